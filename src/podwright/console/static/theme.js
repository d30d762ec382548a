"use strict";
// Before the first paint: the colours that were chosen here before.
(() => {
  try {
    const chosen = localStorage.getItem("podwright-colours");
    if (chosen) document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing follows its system.
  }
})();
