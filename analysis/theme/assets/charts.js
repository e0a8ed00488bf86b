/* Draws every figure.chart from the Vega-Lite spec inside it, in the colours of the page.
   The three vendored scripts beside this one are fetched only by pages that have a chart.
   Nothing is evaluated: expressions run in Vega's interpreter (ast), so a policy without
   unsafe-eval holds. Without this script the tables still have every number. */
(function () {
  "use strict";
  const here = document.currentScript.src;
  const needed = ["vega.min.js", "vega-lite.min.js", "vega-embed.min.js"];
  const drawn = new Map();

  function load() {
    if (window.vegaEmbed) return Promise.resolve();
    return needed.reduce((before, name) => before.then(() => new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = new URL(name, here).href;
      script.onload = done;
      script.onerror = () => fail(new Error(name + " could not be loaded"));
      document.head.append(script);
    })), Promise.resolve());
  }

  function theme(colours, columns, paper) {
    const style = getComputedStyle(document.body);
    const of = (name, onPaper) => (paper ? "" : style.getPropertyValue(name).trim()) || onPaper;
    const text = of("--md-default-fg-color", "#222");
    const soft = of("--md-default-fg-color--light", "#666");
    const grid = of("--md-default-fg-color--lightest", "#ddd");
    const axis = {
      aria: false,
      labelColor: text, titleColor: soft, gridColor: grid, domainColor: grid, tickColor: grid,
      labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", titlePadding: 8,
      labelPadding: 6,
    };
    return {
      aria: false, background: "transparent", font: style.fontFamily, padding: 2,
      axis,
      legend: {
        aria: false, columns, labelColor: text, labelFontSize: 12, offset: 10, rowPadding: 4,
        symbolSize: 90,
      },
      view: { stroke: null }, range: { category: colours },
      mark: { aria: false, color: colours[0] },
      text: { color: text, fontSize: 12 }, rule: { color: text }, tick: { color: text },
      line: { strokeWidth: 2 },
      style: {
        number: { fill: text, fontSize: 12 },
        interval: { strokeWidth: 3, stroke: soft, opacity: 0.8 },
        over: { strokeWidth: 2, stroke: text },
        reference: { stroke: soft, strokeWidth: 1 },
        stated: { stroke: text, strokeWidth: 1.5, strokeDash: [5, 3] },
        band: { fill: soft, fillOpacity: 0.18 },
        marker: { fill: text, stroke: text },
      },
    };
  }

  async function draw(figure, scheme) {
    const view = figure.querySelector(".chart-view");
    try {
      const spec = JSON.parse(figure.querySelector("script").textContent);
      delete spec.title; // The caption has it, where it wraps.
      const dark = scheme === "slate";
      const entries = (view.clientWidth - 20) / (spec.usermeta.entry || 1e4);
      const columns = Math.max(1, Math.floor(entries)); // of the legend
      const config = theme(spec.usermeta[dark ? "dark" : "light"], columns, scheme === "paper");
      const result = await window.vegaEmbed(view, spec, {
        mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
        config, tooltip: { theme: dark ? "dark" : "light" },
      });
      // The label of the view says it all: one picture to a screen reader, not hundreds of shapes.
      view.querySelector("svg").setAttribute("aria-hidden", "true");
      if (drawn.has(figure)) drawn.get(figure).finalize();
      drawn.set(figure, result);
      figure.dataset.drawn = "1";
    } catch (error) {
      failed(figure, error);
    }
  }

  function failed(figure, error) {
    figure.querySelector(".chart-error").hidden = false;
    console.error(figure.id, error);
  }

  function start() {
    const figures = [...document.querySelectorAll("figure.chart")];
    if (!figures.length) return;
    const scheme = () => document.body.dataset.mdColorScheme;
    const all = (which) => figures.forEach((figure) => draw(figure, which));
    load().then(() => {
      all(scheme());
      new MutationObserver(() => all(scheme())).observe(document.body, {
        attributeFilter: ["data-md-color-scheme"],
      });
      // On paper all is dark on white, whatever the screen shows.
      window.addEventListener("beforeprint", () => all("paper"));
      window.addEventListener("afterprint", () => all(scheme()));
    }, (error) => figures.forEach((figure) => failed(figure, error)));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
