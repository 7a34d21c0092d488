// The answers of one gathered send. Memory of its own for headers and digests; payloads are
// referred to where they lie.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>

#include "wire/bare.h"
#include "wire/digest.h"

namespace sluice::bench {

class Batch {
 public:
  static constexpr uint32_t kMaxAnswers = 256;
  // 48 bytes of header, its digest, and the payload's.
  static constexpr uint32_t kMaxOwn = bare::kHeaderSize + 2 * kDigestSize;

  Batch() = default;
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  bool empty() const { return answers_ == 0; }
  bool full() const { return answers_ == kMaxAnswers; }
  void clear();

  // Adds an answer; `payload` has `header.payload()` bytes and must outlive the send.
  void add(const bare::Header& header, const uint8_t* payload, DigestChoice digests);
  // Memory for a payload of this batch; reserved on first use, touched only as far as used.
  uint8_t* scratch(uint32_t size);

  msghdr* message();
  // Drops what was sent; true when all of it was.
  bool advance(uint32_t sent);

 private:
  void append(const uint8_t* data, uint32_t size);
  uint8_t* own(uint32_t size);

  std::array<uint8_t, size_t{kMaxAnswers} * kMaxOwn> own_;
  std::array<iovec, size_t{kMaxAnswers} * 3> parts_;
  uint8_t* scratch_ = nullptr;
  uint64_t scratch_used_ = 0;
  uint32_t own_used_ = 0;
  uint32_t part_count_ = 0;
  uint32_t first_part_ = 0;
  uint32_t answers_ = 0;
  msghdr message_{};
};

}  // namespace sluice::bench
