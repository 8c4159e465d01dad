// Package dbtest tests the packages once, outbox and sweep on SQLite, PostgreSQL and MariaDB.
// It is a module of its own, so that nobody who uses Duepost gets the drivers. It has only tests;
// make databases runs them.
package dbtest
