// Accessible names and keyboard access for what the theme leaves without.

const nameParts = () => {
  document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav, .md-nav .md-nav").forEach((nav) => nav.setAttribute("role", "presentation"));
};

// Code and tables that scroll sideways can be reached with the keyboard.
const reachable = () => {
  for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};

addEventListener("load", () => {
  new MutationObserver(nameParts).observe(document.body, { childList: true, subtree: true });
  nameParts();
  reachable();
});
addEventListener("resize", reachable);
