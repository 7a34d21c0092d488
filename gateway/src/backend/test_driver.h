// Runs requests one after the other on a backend, for tests: submits, pumps, and continues after
// short transfers as the LUN does.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <vector>

#include "backend/backend.h"
#include "backend/test_aio.h"

namespace sluice::backend {

using Bytes = std::vector<uint8_t>;

// Bytes that depend on their offset, so that misplaced or stale data is detected.
inline Bytes pattern(uint64_t offset, uint64_t length, uint8_t salt) {
  Bytes bytes(length);
  for (uint64_t i = 0; i < length; ++i) {
    const uint64_t at = offset + i;
    bytes[i] = static_cast<uint8_t>((at * 31 + (at >> 9) * 7 + salt * 101) % 251 + 1);
  }
  return bytes;
}

// Returns when the backend has released everything.
inline void close_and_wait(Backend& backend) {
  std::promise<void> closed;  // throws if it is called twice
  std::future<void> done = closed.get_future();
  backend.close([&closed] { closed.set_value(); });
  done.wait();
}

class Driver {
 public:
  explicit Driver(Backend& backend) : backend_(backend) {}

  TestAio& aio() { return aio_; }

  // One submission; the transfer may be short.
  int64_t submit(Op op, uint64_t offset, uint64_t length, std::vector<iovec> iov = {},
                 uint8_t flags = 0) {
    Io io;
    io.op = op;
    io.flags = flags;
    io.offset = offset;
    io.length = length;
    io.iov = iov.data();
    io.iovcnt = static_cast<uint32_t>(iov.size());
    int completions = 0;
    io.context = &completions;
    io.done = [](Io& done) { ++*static_cast<int*>(done.context); };
    if (!backend_.submit(io, aio_)) {
      while (completions == 0 && aio_.pump()) {
      }
      EXPECT_EQ(completions, 1);
    }
    EXPECT_FALSE(aio_.pump()) << "an operation outlived its request";
    EXPECT_EQ(io.context, &completions) << "the submitter's context was not restored";
    return io.result;
  }

  // Returns 0 or the first negative errno.
  int64_t transfer(Op op, uint64_t offset, std::vector<iovec> iov, uint8_t flags = 0) {
    while (!iov.empty()) {
      uint64_t length = 0;
      for (const iovec& v : iov) length += v.iov_len;
      const int64_t n = submit(op, offset, length, iov, flags);
      if (n < 0) return n;
      EXPECT_GT(n, 0);
      EXPECT_LE(static_cast<uint64_t>(n), length);
      if (n <= 0 || static_cast<uint64_t>(n) > length) return -EPROTO;
      offset += static_cast<uint64_t>(n);
      advance(iov, static_cast<size_t>(n));
    }
    return 0;
  }

  int64_t write(uint64_t offset, const Bytes& data, uint8_t flags = 0) {
    Bytes copy = data;
    return transfer(Op::kWrite, offset, {{copy.data(), copy.size()}}, flags);
  }

  // The content of the range; empty after an error.
  Bytes read(uint64_t offset, uint64_t length) {
    Bytes data(length, 0xee);
    const int64_t n = transfer(Op::kRead, offset, {{data.data(), data.size()}});
    EXPECT_EQ(n, 0);
    return n == 0 ? data : Bytes();
  }

  int64_t flush() { return submit(Op::kFlush, 0, 0); }
  int64_t discard(uint64_t offset, uint64_t length, uint8_t flags = 0) {
    return submit(Op::kDiscard, offset, length, {}, flags);
  }
  int64_t write_zeroes(uint64_t offset, uint64_t length, uint8_t flags = 0) {
    return submit(Op::kWriteZeroes, offset, length, {}, flags);
  }

 private:
  static void advance(std::vector<iovec>& iov, size_t n) {
    while (n > 0) {
      const size_t step = std::min(n, iov.front().iov_len);
      iov.front().iov_base = static_cast<uint8_t*>(iov.front().iov_base) + step;
      iov.front().iov_len -= step;
      n -= step;
      if (iov.front().iov_len == 0) iov.erase(iov.begin());
    }
  }

  Backend& backend_;
  TestAio aio_;
};

}  // namespace sluice::backend
