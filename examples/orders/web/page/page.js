"use strict";

// The state as the server last told it, and how far its clock is from that of this browser.
let state = { items: [], orders: [] };
let ahead = 0;

const serverNow = () => Date.now() + ahead;
const element = (id) => document.getElementById(id);

// make returns a new element; text is never read as HTML.
function make(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

function seconds(millis) {
  const s = Math.max(0, millis) / 1000;
  return s < 60 ? s.toFixed(1) + " s" : Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
}

async function post(path, body) {
  element("fault").textContent = "";
  try {
    const answer = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}),
    });
    if (!answer.ok) element("fault").textContent = (await answer.json()).error;
  } catch {
    element("fault").textContent = "the shop cannot be reached";
  }
}

// sync lets parent have one child for each value, in this order. Children that are there stay: a
// button keeps its focus while the numbers around it change.
function sync(parent, values, key, create, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const children = values.map((value) => {
    const child = known.get(value[key]) ?? create(value);
    child.dataset.key = value[key];
    update(child, value);
    return child;
  });
  for (const [i, child] of children.entries()) {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  }
  while (parent.children.length > children.length) parent.lastChild.remove();
}

const kinds = ["free", "held", "sold"];

function itemCard(item) {
  const card = make("div");
  const title = make("h3", "", item.name);
  const order = make("button", "order", "Order");
  order.onclick = () => post("api/orders", { sku: item.sku, quantity: 1 });
  title.append(order);
  const bar = make("div", "bar"), numbers = make("div", "numbers");
  for (const kind of kinds) {
    bar.append(make("i", kind));
    numbers.append(make("span", kind + "-number"));
  }
  card.append(title, bar, numbers);
  return card;
}

function updateItem(card, item) {
  const all = item.free + item.held + item.sold || 1;
  for (const kind of kinds) {
    card.querySelector("." + kind).style.width = (100 * item[kind]) / all + "%";
    card.querySelector("." + kind + "-number").textContent = item[kind] + " " + kind;
  }
}

const columns = ["id", "item", "state", "left", "looks", "next", "late", "action"];

function orderRow(order) {
  const row = make("tr");
  row.append(...columns.map((name) => make("td", name)));
  const item = state.items.find((i) => i.sku === order.sku);
  row.querySelector(".id").textContent = order.id.slice(0, 8);
  row.querySelector(".item").textContent = order.quantity + " × " + (item ? item.name : order.sku);
  row.querySelector(".state").append(make("span", "status"));
  const pay = make("button", "pay", "Pay");
  pay.onclick = () => post("api/orders/" + order.id + "/pay");
  row.querySelector(".action").append(pay, make("span", "letters"));
  return row;
}

function updateOrder(row, order) {
  row.dataset.status = order.status;
  const status = row.querySelector(".status");
  status.className = "status " + order.status;
  status.textContent = order.status;
  row.querySelector(".looks").textContent = order.looks;
  row.querySelector(".late").textContent = order.looks > 0 ? order.late + " ms" : "";
  row.querySelector(".pay").hidden = order.status !== "unpaid";
  row.querySelector(".letters").textContent =
    order.letters === 0 ? "" : order.letters === 1 ? "letter sent" : order.letters + " letters sent";
}

// countDown fills in what changes by itself.
function countDown() {
  for (const order of state.orders) {
    const row = document.querySelector(`[data-key="${order.id}"]`);
    const unpaid = order.status === "unpaid";
    row.querySelector(".left").textContent = unpaid ? seconds(order.expiresAt - serverNow()) : "";
    row.querySelector(".next").textContent = unpaid && order.nextLook ? "in " + seconds(order.nextLook - serverNow()) : "";
  }
}

function show(next) {
  state = next;
  ahead = next.now - Date.now();
  sync(element("items"), state.items, "sku", itemCard, updateItem);
  sync(element("orders"), state.orders, "id", orderRow, updateOrder);
  element("empty").hidden = state.orders.length > 0;
  element("broker").textContent = state.broker;
  element("unsent").textContent = state.unsent > 0 ? state.unsent + " messages not sent yet" : "";
  countDown();
}

const events = new EventSource("api/events");
events.onmessage = (event) => show(JSON.parse(event.data));
events.onerror = () => (element("broker").textContent = "connecting …");
setInterval(countDown, 100);
