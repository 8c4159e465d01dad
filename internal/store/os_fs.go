package store

// OS returns the file system of the operating system.
func OS() FS { return nil }
