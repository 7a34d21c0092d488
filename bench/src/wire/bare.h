// The bare protocol: what the limit speaks. A request is 48 bytes, plus its payload if it writes;
// an answer is 48 bytes, plus its payload if it read. The sizes are iSCSI's, the meaning is none:
// the header says how many bytes to move and that is all. Where the peer asked for digests, the
// header, each non-empty payload, or both are followed by their CRC32C, as iSCSI would have it.
#pragma once

#include <cstdint>

#include "pdu/bhs.h"
#include "wire/digest.h"

namespace sluice::bench::bare {

inline constexpr uint32_t kHeaderSize = pdu::kBhsSize;
inline constexpr uint32_t kMaxPayload = 1u << 20;

enum class Op : uint8_t { kHello = 1, kRead = 2, kWrite = 3 };
enum class Store : uint8_t { kNull = 0, kMemory = 1, kFile = 2 };
enum class Status : uint8_t { kGood = 0, kRefused = 1, kDigestError = 2, kMediumError = 3 };

// Both directions use one layout. Offsets: 0 op, 1 status or (hello) store, 2 digests (hello; 1:
// header, 2: data), 4 bytes of payload that follow, 8 byte offset in the store, 16 tag, 20 bytes
// asked for.
struct Header : pdu::Bhs {
  Op op() const { return static_cast<Op>(bytes[0]); }
  Status status() const { return static_cast<Status>(bytes[1]); }
  Store store() const { return static_cast<Store>(bytes[1]); }
  DigestChoice digests() const {
    return {.header = (bytes[2] & 1) != 0, .data = (bytes[2] & 2) != 0};
  }
  uint32_t payload() const { return u32(4); }
  uint64_t offset() const { return load_be64(&bytes[8]); }
  uint32_t tag() const { return u32(16); }
  uint32_t wanted() const { return u32(20); }

  void set_op(Op op) { bytes[0] = static_cast<uint8_t>(op); }
  void set_status(Status s) { bytes[1] = static_cast<uint8_t>(s); }
  void set_store(Store s) { bytes[1] = static_cast<uint8_t>(s); }
  void set_digests(DigestChoice d) {
    bytes[2] = static_cast<uint8_t>((d.header ? 1 : 0) | (d.data ? 2 : 0));
  }
  void set_payload(uint32_t n) { put32(4, n); }
  void set_offset(uint64_t at) { store_be64(&bytes[8], at); }
  void set_tag(uint32_t t) { put32(16, t); }
  void set_wanted(uint32_t n) { put32(20, n); }
};
static_assert(sizeof(Header) == kHeaderSize);

}  // namespace sluice::bench::bare
