// Package auth is about who may connect and what they may do: users with salted password hashes
// and tags, their permissions in virtual hosts, and the rule that some users are let in from this
// machine only. It keeps all of that in the store. It does not know how credentials travel, which
// virtual hosts there are, nor which operation needs which right.
//
// Hashes have RabbitMQ's format, so that users exported from there can be taken over: base64 of
// a 4-byte salt followed by a hash of salt and password. Permissions are regular expressions, see
// package pattern; an empty one permits only the empty name. [rmq access-control]
//
// A change is durable when its function returns, and counts at once, for live connections too.
package auth
