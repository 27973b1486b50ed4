"use strict";
(() => {
  const alive = document.currentScript && document.currentScript.dataset.alive;
  if (alive) new EventSource(alive); // the server ends with the last page

  for (const form of document.querySelectorAll(".drop")) {
    const over = (on) => (event) => { event.preventDefault(); form.classList.toggle("over", on); };
    form.addEventListener("dragover", over(true));
    form.addEventListener("dragleave", over(false));
    form.addEventListener("drop", (event) => {
      over(false)(event);
      const input = form.querySelector("input[type=file]");
      if (!event.dataTransfer.files.length) return;
      input.files = event.dataTransfer.files;
      form.requestSubmit();
    });
  }

  const work = document.getElementById("work");
  if (work) {
    const look = async () => {
      const now = await (await fetch(work.dataset.state)).json();
      if (now.state !== "running") { location.reload(); return; }
      work.querySelector("progress").value = now.done;
      document.getElementById("line").textContent = now.line;
      setTimeout(look, 500);
    };
    setTimeout(look, 500);
  }

  for (const form of document.querySelectorAll(".scenario")) {
    let latest = 0;
    const answer = async (curve) => {
      const mine = ++latest, asked = new URLSearchParams(new FormData(form));
      if (!curve) asked.delete("curve"); // ten times the time: not while a slider moves
      const said = await (await fetch(form.dataset.answer + "?" + asked)).text();
      if (mine === latest) form.querySelector(".answer").innerHTML = said; // tables that the server escaped
    };
    for (const number of form.querySelectorAll("input[type=number]")) {
      const slider = document.createElement("input");
      slider.type = "range";
      slider.min = number.dataset.low; slider.max = number.dataset.high; slider.step = "any"; slider.value = number.value;
      slider.setAttribute("aria-label", number.name);
      slider.addEventListener("change", () => answer(true));
      slider.addEventListener("input", () => { number.value = Number(slider.value).toPrecision(4); answer(false); });
      number.addEventListener("input", () => { slider.value = number.value; answer(false); });
      number.closest("p").append(slider);
    }
    form.addEventListener("change", (event) => { if (event.target.tagName === "SELECT") answer(true); });
    form.addEventListener("submit", (event) => { event.preventDefault(); answer(true); });
    answer(true);
  }
})();
