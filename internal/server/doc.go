// Package server speaks AMQP 0-9-1 with clients and turns what they say into
// calls on the broker.
//
// It knows connections, channels, flow, confirms and heartbeats, and the texts
// in which RabbitMQ reports an error. It does not know how a message is routed,
// queued or stored.
//
// A [Server] accepts connections. Each has two goroutines: the reader, which
// parses frames and does the work they ask for, and the writer, which writes
// what has gathered in the connection's output, many frames in one system call.
// Anyone may append frames to an output: the reader (replies), the reader of
// another connection whose publish found a consumer here (deliveries), the
// store's committer (confirms).
//
// Invariants:
//   - Only the reader touches a channel's publishing side and its state.
//   - What is delivered and not yet settled is guarded by the channel's lock,
//     which is held while the delivery is appended, so that delivery tags leave
//     in ascending order.
//   - Lock order: channel, confirms, output. No call into the broker is made
//     under any of them.
//   - Nothing waits for a client except its own reader and writer.
//   - An error becomes channel.close or connection.close in one place, conn.fail.
package server
