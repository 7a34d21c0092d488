// The one place where an answer is cut to the room it has (SPC-5 §4.2.5.6 ALLOCATION LENGTH):
// whatever a builder writes past the end is counted and dropped, so lengths inside the answer are
// those of the whole and no builder checks bounds itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace sluice::scsi {

// Every builder of this room has the form `size_t build_x(..., MutableBytes out)`: it fills `out`
// from the start and returns how many bytes of it are the answer, never more than out.size().
class ResponseWriter {
 public:
  explicit ResponseWriter(MutableBytes out) : out_(out) {}

  void u8(uint8_t v) { append<1>(v); }
  void u16(uint16_t v) { append<2>(v); }
  void u24(uint32_t v) { append<3>(v); }
  void u32(uint32_t v) { append<4>(v); }
  void u64(uint64_t v) { append<8>(v); }
  void bytes(ByteView data);
  void zeros(size_t count);
  // Exactly `width` characters: cut or padded with spaces on the right (SPC-5 §4.3.1).
  void text(std::string_view characters, size_t width);
  // Zeros until the answer is a multiple of `unit` bytes long, counted from `since`.
  void align(size_t unit, size_t since = 0) { zeros((unit - (full_ - since) % unit) % unit); }

  // Fill in a length once it is known. `at` lies in what was written.
  void set_u8(size_t at, uint8_t v) { put<1>(at, v); }
  void set_u16(size_t at, uint16_t v) { put<2>(at, v); }
  void set_u32(size_t at, uint32_t v) { put<4>(at, v); }

  size_t full() const { return full_; }                         // as if nothing was cut
  size_t size() const { return std::min(full_, out_.size()); }  // bytes of `out` filled

 private:
  template <size_t N>
  void put(size_t at, uint64_t v) {
    for (size_t i = 0; i < N; ++i) {
      if (at + i < out_.size()) out_[at + i] = static_cast<uint8_t>(v >> (8 * (N - 1 - i)));
    }
  }
  template <size_t N>
  void append(uint64_t v) {
    put<N>(full_, v);
    full_ += N;
  }

  MutableBytes out_;
  size_t full_ = 0;
};

}  // namespace sluice::scsi
