package store

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"
)

// runKeys finds the records of a run by the hashes of their publishers' keys. The
// run's file has pages of 4096 bytes, in the order of the hashes:
//
//	   0 up to 255 keys of 16 bytes: u64 hash, u32 offset / 8 and u32 size of the record
//	4080 12 bytes zero   4092 u32 crc32c of bytes 0..4092
//
// Hashes are spread evenly, so the place of one among them tells, nearly, in which
// page it is: one read finds it.
type runKeys struct {
	count  uint32
	at     int64    // of the first page in the file
	list   []runKey // while the run is written
	filter keyFilter
	lost   bool // the pages are not known any more: the records have to be read
}

type runKey struct {
	hash        uint64
	off, length uint32
}

const (
	keyPageBytes   = 4096
	keyBytes       = 16
	keysPerPage    = 255
	keyPageSum     = keyPageBytes - 4
	keyFilterBits  = 10 // per key: one look-up in a hundred for nothing
	keyFilterTests = 6
)

func (k *runKeys) pages() int { return (int(k.count) + keysPerPage - 1) / keysPerPage }

func (k *runKeys) bytes() int64 { return int64(k.pages()) * keyPageBytes }

// gather takes in a record that was written to the run, if it has a key.
func (k *runKeys) gather(rec []byte, off uint32) {
	if h := recordKeyHash(rec); h != 0 {
		k.list = append(k.list, runKey{h, off, uint32(len(rec))})
	}
}

// append appends the pages.
func (k *runKeys) append(b []byte, table *crc32.Table) []byte {
	slices.SortFunc(k.list, func(a, b runKey) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.off, b.off))
	})
	for keys := range slices.Chunk(k.list, keysPerPage) {
		start := len(b)
		for _, key := range keys {
			b = le.AppendUint64(b, key.hash)
			b = le.AppendUint32(b, key.off)
			b = le.AppendUint32(b, key.length)
		}
		b = append(b, make([]byte, keyPageSum-(len(b)-start))...)
		b = le.AppendUint32(b, crc32.Checksum(b[start:], table))
	}
	return b
}

// page reads one page. It is a *CorruptError if that is damaged.
func (r *run) page(n int, l *log) ([]runKey, error) {
	b := make([]byte, keyPageBytes)
	at := r.keys.at + int64(n)*keyPageBytes
	if err := readFull(r.file, b, at); err != nil {
		return nil, fmt.Errorf("read keys of %s at %d: %w", r.name, at, err)
	}
	if le.Uint32(b[keyPageSum:]) != crc32.Checksum(b[:keyPageSum], l.table) {
		return nil, &CorruptError{File: r.name, Offset: at, Reason: "page of keys"}
	}
	keys := make([]runKey, min(keysPerPage, int(r.keys.count)-n*keysPerPage))
	for i := range keys {
		keys[i] = runKey{le.Uint64(b), le.Uint32(b[8:]), le.Uint32(b[12:])}
		b = b[keyBytes:]
	}
	return keys, nil
}

// guesses is how many pages are tried at the place that a hash should have, before
// the rest is halved again and again: hashes may be spread badly after all.
const guesses = 4

// findKey returns where records with a hash are. What it finds may not wait any
// more.
func (r *run) findKey(hash uint64, l *log) ([]runKey, error) {
	if r.keys.lost {
		return r.searchKey(hash, l)
	}
	list, err := r.lookUp(hash, l)
	if IsCorruption(err) {
		return r.searchKey(hash, l)
	}
	return list, err
}

func (r *run) lookUp(hash uint64, l *log) ([]runKey, error) {
	lo, hi := 0, r.keys.pages()
	low, high := uint64(0), ^uint64(0)
	for tries := 0; lo < hi; tries++ {
		n := lo + (hi-lo)/2
		if tries < guesses && high > low {
			n = lo + int(float64(hash-low)/float64(high-low)*float64(hi-lo))
			n = min(n, hi-1)
		}
		keys, err := r.page(n, l)
		switch {
		case err != nil:
			return nil, err
		case hash < keys[0].hash:
			hi, high = n, keys[0].hash
		case keys[len(keys)-1].hash < hash:
			lo, low = n+1, keys[len(keys)-1].hash
		default:
			return r.equalKeys(hash, n, keys, l)
		}
	}
	return nil, nil
}

// equalKeys returns all keys with a hash, given a page in which one would be.
func (r *run) equalKeys(hash uint64, n int, keys []runKey, l *log) (list []runKey, err error) {
	for n > 0 && keys[0].hash == hash {
		n--
		if keys, err = r.page(n, l); err != nil {
			return nil, err
		}
	}
	for {
		for _, k := range keys {
			if k.hash == hash {
				list = append(list, k)
			}
		}
		if n++; n == r.keys.pages() || keys[len(keys)-1].hash > hash {
			return list, nil
		}
		if keys, err = r.page(n, l); err != nil {
			return nil, err
		}
	}
}

// searchKey is findKey without the pages: it reads all of the run that may wait.
func (r *run) searchKey(hash uint64, l *log) (list []runKey, err error) {
	var m image
	for n := range r.blocks {
		if err := r.read(&m, n, l, func(int64, int64) {}); err != nil {
			return nil, err
		}
		for _, f := range m.records {
			if recordKeyHash(m.record(&f)) == hash {
				list = append(list, runKey{hash, f.off, f.length})
			}
		}
	}
	return list, nil
}

// record returns the bytes of a record.
func (m *image) record(f *found) []byte {
	at := int64(f.off-m.off) * 8
	return m.buf[at : at+int64(f.length) : at+int64(f.length)]
}

// keyFilter tells which hashes are surely not in a run: a Bloom filter of which all
// bits of a hash are in one stretch of 64 bytes. Nil tells nothing.
type keyFilter []uint64

func newKeyFilter(keys int) keyFilter {
	return make(keyFilter, (keys*keyFilterBits+511)/512*8)
}

// stretch returns the 8 words for a hash.
func (f keyFilter) stretch(mixed uint64) []uint64 {
	n, _ := bits.Mul64(mixed*0x9E3779B97F4A7C15, uint64(len(f)/8))
	return f[8*n : 8*n+8]
}

func (f keyFilter) add(hash uint64) {
	h := spread(hash)
	s := f.stretch(h)
	for range keyFilterTests {
		s[h>>6&7] |= 1 << (h & 63)
		h >>= 9
	}
}

func (f keyFilter) mayHave(hash uint64) bool {
	if f == nil {
		return true
	}
	h := spread(hash)
	s := f.stretch(h)
	for range keyFilterTests {
		if s[h>>6&7]>>(h&63)&1 == 0 {
			return false
		}
		h >>= 9
	}
	return true
}

func (f keyFilter) append(b []byte) []byte {
	for _, w := range f {
		b = le.AppendUint64(b, w)
	}
	return b
}

// makeFilter makes the filter of a run that was written.
func (k *runKeys) makeFilter() {
	if k.count == 0 {
		return
	}
	k.filter = newKeyFilter(len(k.list))
	for _, key := range k.list {
		k.filter.add(key.hash)
	}
}

// keepFilter keeps the filter of a run in memory if that is not too much already.
func (l *log) keepFilter(r *run) {
	n := int64(8 * len(r.keys.filter))
	if l.filterBytes.Add(n) > l.o.KeyFilterBytes {
		l.filterBytes.Add(-n)
		r.keys.filter = nil
	}
}

// releaseFilter is called when a run goes. Others may still use the filter.
func (l *log) releaseFilter(r *run) { l.filterBytes.Add(-int64(8 * len(r.keys.filter))) }

// readFilter reads the filter from the file, if it may be kept. One that is damaged
// is missed only by who waits for a look-up.
func (r *run) readFilter(l *log, at, n int64, sum uint32) error {
	if n == 0 || n%64 != 0 || l.filterBytes.Load()+n > l.o.KeyFilterBytes {
		return nil
	}
	b := make([]byte, n)
	if err := readFull(r.file, b, at); err != nil {
		return fmt.Errorf("read filter of %s: %w", r.name, err)
	}
	if crc32.Checksum(b, l.table) != sum {
		l.logger.Warn("filter of keys is damaged, look-ups are slower", "file", r.name, "offset", at)
		return nil
	}
	r.keys.filter = make(keyFilter, n/8)
	for i := range r.keys.filter {
		r.keys.filter[i] = le.Uint64(b[8*i:])
	}
	l.keepFilter(r)
	return nil
}
