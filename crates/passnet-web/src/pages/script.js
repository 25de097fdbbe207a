
"use strict";
(() => {
  // Tables that are there in full are sorted and filtered in place; the rest of the sorting is the server's.
  const number = (text) => {
    const found = text.replace(/[^0-9.eE+-]/g, "");
    return found === "" || Number.isNaN(Number(found)) ? null : Number(found);
  };
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell ? cell.dataset.value ?? cell.textContent.trim() : "";
  };
  const compare = (one, two) => {
    const [a, b] = [number(one), number(two)];
    if (a !== null && b !== null) return a - b;
    if (a !== null || b !== null) return a === null ? 1 : -1;
    return one.localeCompare(two);
  };
  for (const table of document.querySelectorAll("table[data-whole]")) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const control = head.querySelector("a, button");
      if (!control) return;
      control.addEventListener("click", (event) => {
        event.preventDefault();
        const up = head.getAttribute("aria-sort") === "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows];
        rows.sort((a, b) => compare(key(a, column), key(b, column)) * (up ? 1 : -1));
        rows.forEach((row) => body.append(row));
      });
    });
  }
  for (const input of document.querySelectorAll("input[data-filters]")) {
    const table = document.getElementById(input.dataset.filters);
    if (!table) continue;
    const form = input.closest("form");
    if (form) form.hidden = false;
    form?.addEventListener("submit", (event) => {
      if (table.dataset.whole !== undefined) event.preventDefault();
    });
    input.addEventListener("input", () => {
      if (table.dataset.whole === undefined) return;
      const wanted = input.value.toLowerCase();
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
      }
    });
  }
  // A question for a name leads to its page where the list of names is there, also when it came with the address.
  for (const input of document.querySelectorAll("input[data-leads]")) {
    const table = document.getElementById(input.dataset.leads);
    if (!table) continue;
    const rows = [...table.tBodies[0].rows];
    const narrow = () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    };
    const target = () => {
      const wanted = input.value.trim().toLowerCase();
      const row = rows.find((row) => row.cells[0].textContent.trim().toLowerCase() === wanted);
      return row?.querySelector("a")?.href;
    };
    input.addEventListener("input", narrow);
    input.closest("form")?.addEventListener("submit", (event) => {
      if (!target()) return;
      event.preventDefault();
      location.assign(target());
    });
    const asked = new URLSearchParams(location.search).get("op");
    if (asked) {
      input.value = asked;
      narrow();
      if (target()) location.replace(target());
    }
  }
  // Replay: one step at a time, with buttons and arrow keys.
  const steps = [...document.querySelectorAll(".step")];
  const panel = document.querySelector(".steps");
  if (steps.length > 0 && panel) {
    let now = -1;
    const where = panel.querySelector("output");
    const show = (next) => {
      now = Math.max(0, Math.min(steps.length - 1, next));
      steps.forEach((step, index) => {
        step.hidden = index > now;
        step.classList.toggle("now", index === now);
      });
      where.textContent = `step ${now + 1} of ${steps.length}`;
      steps[now].scrollIntoView({ block: "nearest" });
    };
    const all = () => {
      now = -1;
      steps.forEach((step) => { step.hidden = false; step.classList.remove("now"); });
      where.textContent = `all ${steps.length} steps`;
    };
    const acts = { first: () => show(0), back: () => show(now - 1), next: () => show(now + 1), all };
    for (const button of panel.querySelectorAll("button")) {
      button.addEventListener("click", acts[button.name]);
    }
    document.addEventListener("keydown", (event) => {
      if (event.target.matches("input, select, textarea")) return;
      if (event.key === "ArrowRight") acts.next();
      if (event.key === "ArrowLeft") acts.back();
    });
    panel.hidden = false;
  }
})();
