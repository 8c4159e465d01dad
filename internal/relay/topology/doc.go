// Package topology is about what a relay has on RabbitMQ: names, arguments, and how it is made and
// taken away over a connection.
//
// A delayed exchange X of inner type T is two exchanges. X, of type headers, is where publishers
// publish: what carries a delay header goes to the intake queue, the rest by the alternate exchange
// to X.duepost, of type T, which has the bindings of consumers. What is due is published there too.
//
// All delayed exchanges of a virtual host share the queues: the intake, where messages arrive; the
// rescue, for those whose expiration ended before a relay had them; the wheel, where they wait; and
// the parked ones, which could not be delivered.
//
// It knows nothing of time, of messages, and of who asks for it. Declaring what is there changes
// nothing; what is there and different is an error that names it.
package topology
