// Contents that say where they belong: each 8-byte word is a hash of its place on the LUN and of a
// seed, so that stale, misplaced and torn data all show.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sluice::bench {

class Pattern {
 public:
  explicit Pattern(uint64_t seed) : seed_(seed * 0x9e3779b97f4a7c15) {}

  void fill(uint8_t* out, uint64_t offset, uint32_t size) const {
    while (size > 0) {
      const uint64_t word = word_at(offset / 8);
      const auto skip = static_cast<uint32_t>(offset % 8);
      const uint32_t take = std::min(size, 8 - skip);
      std::memcpy(out, reinterpret_cast<const uint8_t*>(&word) + skip, take);
      out += take;
      offset += take;
      size -= take;
    }
  }

  // How many of the bytes are right before the first wrong one; `size` when all are.
  uint32_t check(const uint8_t* data, uint64_t offset, uint32_t size) const {
    uint32_t done = 0;
    while (done < size) {
      const uint64_t word = word_at((offset + done) / 8);
      const auto skip = static_cast<uint32_t>((offset + done) % 8);
      const uint32_t take = std::min(size - done, 8 - skip);
      if (std::memcmp(data + done, reinterpret_cast<const uint8_t*>(&word) + skip, take) != 0) {
        return done;
      }
      done += take;
    }
    return size;
  }

 private:
  uint64_t word_at(uint64_t index) const {  // splitmix64
    uint64_t z = index * 0x9e3779b97f4a7c15 + seed_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t seed_;
};

}  // namespace sluice::bench
