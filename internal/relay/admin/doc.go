// Package admin is about a relay as operators see it: health, metrics and status over HTTP.
//
//	GET /health/live      200 while the process can answer
//	GET /health/ready     200 if every relay is at work and nothing endangers messages, else 503 with why
//	GET /metrics          counters in Prometheus' form
//	GET /api/relay/status what each relay does and what waits
//
// It only reads. It asks nobody for a password, so it belongs on a port that only those reach who may know.
//
// It does not know how a relay works: it reads the counters of one, and asks RabbitMQ's management
// API what is in the queues.
package admin
