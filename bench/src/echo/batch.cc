#include "echo/batch.h"

#include <sys/mman.h>

#include <cstring>

#include "wire/tcp.h"

namespace sluice::bench {
namespace {
constexpr uint64_t kScratchSize = uint64_t{Batch::kMaxAnswers} * bare::kMaxPayload;
}

Batch::~Batch() {
  if (scratch_) munmap(scratch_, kScratchSize);
}

void Batch::clear() {
  scratch_used_ = 0;
  own_used_ = part_count_ = first_part_ = answers_ = 0;
}

uint8_t* Batch::own(uint32_t size) {
  uint8_t* at = own_.data() + own_used_;
  own_used_ += size;
  return at;
}

// Neighbours in memory become one part: the answers to a batch of writes are a single one.
void Batch::append(const uint8_t* data, uint32_t size) {
  if (part_count_ > 0) {
    iovec& last = parts_[part_count_ - 1];
    if (static_cast<const uint8_t*>(last.iov_base) + last.iov_len == data) {
      last.iov_len += size;
      return;
    }
  }
  parts_[part_count_++] = {const_cast<uint8_t*>(data), size};
}

void Batch::add(const bare::Header& header, const uint8_t* payload, DigestChoice digests) {
  uint8_t* head = own(bare::kHeaderSize);
  std::memcpy(head, header.data(), bare::kHeaderSize);
  append(head, bare::kHeaderSize);
  if (digests.header) {
    uint8_t* digest = own(kDigestSize);
    digest_store(digest, digest_extend(kDigestStart, head, bare::kHeaderSize));
    append(digest, kDigestSize);
  }
  const uint32_t size = header.payload();
  if (size > 0) {
    append(payload, size);
    if (digests.data) {
      uint8_t* digest = own(kDigestSize);
      digest_store(digest, digest_extend(kDigestStart, payload, size));
      append(digest, kDigestSize);
    }
  }
  ++answers_;
}

uint8_t* Batch::scratch(uint32_t size) {
  if (!scratch_) {
    void* block = mmap(nullptr, kScratchSize, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) die("no address space for read buffers");
    scratch_ = static_cast<uint8_t*>(block);
  }
  uint8_t* at = scratch_ + scratch_used_;
  scratch_used_ += size;
  return at;
}

msghdr* Batch::message() {
  message_ = {};
  message_.msg_iov = parts_.data() + first_part_;
  message_.msg_iovlen = part_count_ - first_part_;
  return &message_;
}

bool Batch::advance(uint32_t sent) {
  while (first_part_ < part_count_ && sent >= parts_[first_part_].iov_len) {
    sent -= static_cast<uint32_t>(parts_[first_part_++].iov_len);
  }
  if (first_part_ == part_count_) return true;
  iovec& part = parts_[first_part_];
  part.iov_base = static_cast<uint8_t*>(part.iov_base) + sent;
  part.iov_len -= sent;
  return false;
}

}  // namespace sluice::bench
