package config

import "runtime/debug"

// Version is what this build calls itself: the module version it was installed as, else the
// commit it was built from, else "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
