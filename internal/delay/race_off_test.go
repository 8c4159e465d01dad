//go:build !race

package delay

// raceDetector says that everything is ten times slower.
const raceDetector = false
