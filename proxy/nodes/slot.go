package nodes

import "redlock-proxy/commands/catalog/keys"

// SlotOf returns the slot of a key: the CRC-16 (XMODEM) of its hash tag, or of the whole key if it
// has no tag, modulo SlotCount.
func SlotOf(key string) int {
	if tag, tagged := keys.Tag(key); tagged {
		key = tag
	}
	const polynomial = 0x1021
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			overflows := crc&0x8000 != 0
			if crc <<= 1; overflows {
				crc ^= polynomial
			}
		}
	}
	return int(crc) % SlotCount
}
