// The progress of a request that takes several commands of a device, stored in a and b of Io::priv.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/backend.h"

namespace sluice::passthrough {

struct Progress {
  enum class Stage : uint8_t { kData, kFlush };

  explicit Progress(backend::Io& io) : priv(io.priv) {}
  static void begin(backend::Io& io) {
    io.priv.a = 0;
    io.priv.b = io.op == backend::Op::kFlush ? 1 : 0;
  }
  uint64_t& done() { return priv.a; }  // bytes
  Stage stage() const { return static_cast<Stage>(priv.b & 1); }
  void flush_next() { priv.b = 1; }
  // Counts a failed attempt. False: no attempts left.
  bool retry() {
    priv.b += 2;
    return priv.b < 2 * kAttempts;
  }
  void succeeded() { priv.b &= 1; }

 private:
  static constexpr uint64_t kAttempts = 5;
  backend::Io::Private& priv;
};

// The source of a command's data.
enum class Source : uint8_t {
  kNone,
  kIov,    // the request's iovecs
  kZeros,  // backend/zeros.h
  kList,   // a parameter list of the command
};

// Copies the first `bytes` of the iovecs of `io` into `out` (the vectors of SG and NVMe are
// iovecs).
inline void trim(const backend::Io& io, uint64_t bytes, std::vector<iovec>& out) {
  out.clear();
  for (uint32_t i = 0; bytes > 0; ++i) {
    out.push_back({io.iov[i].iov_base, std::min<uint64_t>(io.iov[i].iov_len, bytes)});
    bytes -= out.back().iov_len;
  }
}

}  // namespace sluice::passthrough
