// Package daemon is about wiring: it makes one running broker out of the parts, and takes it
// down again. It knows every part and the order in which they start and stop; it has no logic of
// its own beside that. It reads no flags and no environment.
//
// A part may use what stands to its right, so they start from right to left and stop from left
// to right:
//
//	AMQP server -> broker -> delay engine -> alarms -> store
//	HTTP (asks all of them for their health, from the first moment to the last)
//
// All ports are taken before the first part starts, so that a start which fails for one of them
// has touched nothing; clients that connect meanwhile wait until they are accepted.
//
// [Start] returns when clients may connect. [Daemon.Shutdown] is the orderly stop: clients are
// told, everything is made durable. [Daemon.Kill] is what kill -9 would leave behind, for tests
// and for the demo.
package daemon
