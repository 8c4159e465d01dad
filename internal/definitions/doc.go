// Package definitions is about definitions files: users, virtual hosts, permissions, parameters,
// policies, exchanges, queues and bindings in RabbitMQ's JSON. It maps them to and from what the
// broker has.
//
// It does not know files, requests or when to import. What a declaration, a policy or a hash may
// be, and how it is kept, is known by those it asks.
//
// An import is all or nothing as far as the file goes: it is read and checked as a whole, against
// itself and against what is there, before anything is made, and [Faults] are all there are, each
// with its place in the file. What is there under a name already stays as it is. [rmq definitions]
package definitions
