// Sets the stored choice of dark or light before the first paint. Without a choice, the system
// decides.
{
  const KEY = "fastevm-theme";
  const root = document.documentElement;
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // the browser's storage is switched off
    }
  };
  const dark = () => {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  if (["dark", "light"].includes(stored())) root.dataset.theme = stored();
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => {
      button.textContent = dark() ? "☀" : "☾";
      button.setAttribute("aria-label", dark() ? "Light colours" : "Dark colours");
      button.title = button.getAttribute("aria-label");
    };
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try {
        localStorage.setItem(KEY, root.dataset.theme);
      } catch {
        // the choice cannot be stored, so it applies only to this page
      }
      show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    show();
  });
}
