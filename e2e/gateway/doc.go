// Package gateway has the suite that plays clients of the gateway on real RabbitMQs: 3.10 where it
// is installed and 4.3 where DUEPOST_TEST_RABBITMQ43 says so. It knows the gateway by its port.
package gateway
