// What style and server cannot know: whether Airflow frames the page, and which colours and language it shows.
(() => {
  "use strict";
  const page = document.documentElement;
  const framed = window.parent !== window;
  page.classList.toggle("framed", framed);

  // Airflow keeps the choice of its user in the browser; a page that may not look there follows the system.
  const kept = (name) => {
    try {
      return window.localStorage.getItem(name);
    } catch {
      return null;
    }
  };
  const showColours = (theme) => {
    if (theme === "dark" || theme === "light") page.dataset.theme = theme;
    else delete page.dataset.theme;
  };
  showColours(kept("theme"));
  window.addEventListener("storage", (event) => {
    if (event.key === "theme") showColours(event.newValue);
  });
  try {
    const around = framed ? window.parent.document.documentElement : null;
    if (around) {
      const follow = () => {
        if (around.classList.contains("dark")) showColours("dark");
        else if (around.classList.contains("light")) showColours("light");
      };
      follow();
      new MutationObserver(follow).observe(around, { attributeFilter: ["class"] });
    }
  } catch {
    // Framed by a page of another origin: nothing to follow.
  }

  const language = (kept("i18nextLng") || "").slice(0, 2);
  const offered = page.dataset.offered.split(" ");
  // Framed, the page has Airflow's language; by itself, the one that was chosen on it.
  if ((framed || !("said" in page.dataset)) && language !== page.lang && offered.includes(language)) {
    const address = new URL(window.location.href);
    address.searchParams.set("lang", language);
    window.location.replace(address);
  }
})();
