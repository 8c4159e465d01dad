// Package policy is about what operators lay down for queues and exchanges by their names: which
// settings there are, what they may be, which policy a name falls under, and what comes of it
// where an operator policy limits it. [rmq policies]
//
// It does not know queues and exchanges themselves, nor how a setting acts on one, nor how
// policies are kept.
//
// A virtual host has two lists: policies, and operator policies, which users of the virtual host
// cannot change and which hold numbers down. Of each list at most one policy applies to a thing:
// that with the highest priority among those whose pattern matches its name, whose apply-to is
// about such things, and whose settings such things have ([List.Match]). [Merge] makes one
// [Definition] of the two. Texts of faults are RabbitMQ's.
package policy
