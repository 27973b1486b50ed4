// Pages work without this: it shows the next question at once, takes keys, and keeps the board fresh.
"use strict";
document.documentElement.classList.add("scripted");
const main = document.getElementById("content");
let sending = Promise.resolve();
let waiting = 0;
const A_GLANCE = 400; // milliseconds in which nobody has read a question
let since = document.hidden ? null : performance.now(); // when the question came into sight

function seen() {
  since = document.hidden ? null : performance.now();
}

function shown() {
  return since === null ? 0 : Math.round(performance.now() - since);
}

function parsed(text) {
  return new DOMParser().parseFromString(text, "text/html");
}

function putIn(page, focus) {
  main.replaceChildren(...page.getElementById("content").childNodes);
  if (focus) {
    main.focus();
  }
}

function say(text) {
  const place = document.getElementById("wrong");
  if (place) {
    place.textContent = text;
  }
}

function fields(form, button) {
  const found = new URLSearchParams(new FormData(form));
  found.set("shown_ms", shown());
  if (button && button.name) {
    found.set(button.name, button.value);
  }
  return found;
}

async function send(address, body) {
  const answer = await fetch(address, {
    method: "POST", body, headers: { Accept: "text/html" }, credentials: "same-origin",
  });
  const page = parsed(await answer.text());
  return { isThere: answer.ok || page.getElementById("now") !== null, page };
}

// Answers go one after the other; a question that could not be sent is shown again.
function answer(form, button) {
  const body = fields(form, button);
  const address = form.getAttribute("action");
  const next = document.getElementById("next");
  const old = form.cloneNode(true);
  if (next) {
    document.getElementById("now").replaceChildren(next.content);
    next.remove();
    document.querySelector("#now legend").setAttribute("tabindex", "-1");
    document.querySelector("#now legend").focus();
    seen();
  } else {
    form.querySelectorAll("button").forEach((one) => { one.disabled = true; });
  }
  say("");
  waiting += 1;
  sending = sending.then(async () => {
    try {
      const { isThere, page } = await send(address, body);
      waiting -= 1;
      if (!isThere) {
        location.reload();
        return;
      }
      const now = document.querySelector("#now form");
      const fresh = page.querySelector("#now form");
      if (waiting) {
        return;
      }
      if (now && fresh && next && now.dataset.shown === fresh.dataset.shown) {
        fresh.replaceWith(now); // somebody may be in the middle of it
        const kept = document.activeElement;
        putIn(page, false);
        if (main.contains(kept)) {
          kept.focus();
        }
      } else {
        putIn(page, true);
        seen();
      }
    } catch {
      waiting -= 1;
      document.getElementById("now").replaceChildren(old);
      seen();
      const place = document.getElementById("wrong");
      say(place.dataset.notSent);
    }
  });
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.classList.contains("question")) {
    event.preventDefault();
    if (shown() >= A_GLANCE) {
      answer(form, event.submitter);
    }
  }
});

// The second click of a double one, and a key that is held, do nothing.
document.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest("button")) {
    event.preventDefault();
  }
}, true);

document.addEventListener("visibilitychange", () => {
  if (since === null) {
    seen();
  }
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) {
    seen();
  }
});

document.addEventListener("keydown", (event) => {
  const within = event.target.closest("input, select, textarea");
  if (within || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) {
    return;
  }
  const button = document.querySelector(`#content [data-key="${CSS.escape(event.key)}"]`) ?? event.target.closest("button");
  if (event.repeat && button) {
    event.preventDefault();
  } else if (button?.dataset.key === event.key) {
    event.preventDefault();
    button.click();
  }
});

// What is shared is an address: by the device's own way, or else it is copied.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-share]");
  if (button) {
    const url = button.dataset.share;
    await (navigator.share ? navigator.share({ title: document.title, url }) : navigator.clipboard.writeText(url));
    button.textContent += " \u2713";
  }
});

const live = document.getElementById("live");
if (live) {
  setInterval(async () => {
    if (document.hidden) {
      return;
    }
    const found = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
    if (found && found.ok) {
      const fresh = parsed(await found.text()).getElementById("live");
      if (fresh) {
        const open = [...live.querySelectorAll("details")].map((one) => one.open);
        const focused = [...live.querySelectorAll("summary")].indexOf(document.activeElement);
        live.replaceChildren(...fresh.childNodes);
        live.querySelectorAll("details").forEach((one, place) => { one.open = open[place] ?? false; });
        live.querySelectorAll("summary")[focused]?.focus();
      }
    }
  }, 1000 * Number(live.dataset.every));
}
