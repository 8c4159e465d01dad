// Package web is about the shop as a browser and programs see it: a JSON API, a stream of what
// changes, and a page.
//
//	GET  /                       the page
//	GET  /api/overview           stock and the last orders
//	GET  /api/events             the same as server-sent events, whenever it changes
//	POST /api/orders             {"sku": "mug", "quantity": 1}; answers 201 with the order
//	GET  /api/orders/{id}        an order
//	POST /api/orders/{id}/pay    answers with the order
//
// A request that cannot be answers {"error": "…"} with 400, 404 or 409. It does not know how orders
// are closed.
package web
