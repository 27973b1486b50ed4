"use strict";
// Sorting and search for the board. Everything can be read without.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var body = table.tBodies[0], rows = Array.from(body.rows), heads = Array.from(table.tHead.rows[0].cells);
  var value = function (row, k) {
    var said = row.cells[k].textContent;
    if (heads[k].dataset.by === "text") return said.toLowerCase();
    return said[0] === "<" ? 0 : parseFloat(said.replace(">", ""));
  };
  heads.forEach(function (head, k) {
    if (!head.dataset.by) return;
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button);
    button.addEventListener("click", function () {
      var up = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") !== "ascending" : head.dataset.by !== "down";
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      table.classList.add("sorted");
      rows.slice().sort(function (a, b) {
        var x = value(a, k), y = value(b, k);
        return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
      }).forEach(function (row) { row.classList.remove("new"); body.appendChild(row); });
    });
  });
  var tools = document.createElement("div"), label = document.createElement("label");
  var input = document.createElement("input"), told = document.createElement("p");
  tools.className = "tools";
  label.textContent = "Search items: ";
  input.type = "search";
  told.setAttribute("role", "status");
  told.className = "soft";
  label.appendChild(input);
  tools.append(label, told);
  table.parentNode.before(tools);
  input.addEventListener("input", function () {
    var wanted = input.value.trim().toLowerCase(), n = 0;
    rows.forEach(function (row) {
      var name = row.querySelector("th"), whole = name.querySelector("[title]");
      var found = (name.textContent + " " + (whole ? whole.title : "")).toLowerCase().includes(wanted);
      row.hidden = !found;
      n += found;
    });
    told.textContent = wanted ? n + " of " + rows.length + " items" : "";
  });
});
window.addEventListener("beforeprint", function () {
  document.querySelectorAll("details").forEach(function (one) { one.open = true; });
});
