package store

import "slices"

// sortPlanned sorts by key. spare is scratch of the same length or more. The list
// is nearly in order of sequence numbers, which a radix sort by due keeps: of
// entries with the same due only few are out of place.
func sortPlanned(list, spare []planned) {
	if len(list) < 256 {
		slices.SortFunc(list, func(a, b planned) int { return a.key.compare(b.key) })
		return
	}
	lo, hi := list[0].key.Due, list[0].key.Due
	for i := range list {
		lo, hi = min(lo, list[i].key.Due), max(hi, list[i].key.Due)
	}
	from, to := list, spare[:len(list)]
	for shift := 0; uint64(hi-lo)>>shift != 0; shift += radixBits {
		radixPass(from, to, lo, shift)
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
	// Insertion sort: what stands at the wrong place does not stand far from it,
	// unless much was copied or retried.
	moves := 0
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && list[j].key.Less(list[j-1].key); j-- {
			list[j], list[j-1] = list[j-1], list[j]
			if moves++; moves > 4*len(list) {
				slices.SortFunc(list, func(a, b planned) int { return a.key.compare(b.key) })
				return
			}
		}
	}
}

const radixBits = 11

// radixPass sorts by one digit, keeping the order of equal ones.
func radixPass(from, to []planned, lo int64, shift int) {
	var start [1<<radixBits + 1]uint32
	const mask = 1<<radixBits - 1
	for i := range from {
		start[uint64(from[i].key.Due-lo)>>shift&mask+1]++
	}
	for i := range mask {
		start[i+1] += start[i]
	}
	for i := range from {
		d := uint64(from[i].key.Due-lo) >> shift & mask
		to[start[d]] = from[i]
		start[d]++
	}
}
