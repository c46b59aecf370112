// Accessible names and keyboard access for what the theme leaves without.

const nameParts = () => {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  for (const nav of document.querySelectorAll(".md-code__nav, .md-nav .md-nav")) {
    nav.setAttribute("role", "presentation"); // one landmark for the whole navigation
    for (const name of ["aria-expanded", "aria-label", "aria-labelledby"]) nav.removeAttribute(name);
  }
};

// Code and tables that scroll sideways can be reached with the keyboard.
const reachable = () => {
  for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};

addEventListener("load", () => {
  new MutationObserver(nameParts).observe(document.body, {
    childList: true, subtree: true, attributeFilter: ["aria-expanded"] });
  nameParts();
  reachable();
});
addEventListener("resize", reachable);
