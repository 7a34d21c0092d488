// Splits a byte stream into PDUs (RFC 7143 §11.2) without copying data segments: they stay in the
// receive buffers and are passed on as slices; only small pieces are packed (packer.h). It checks
// digests and uses no sockets.
//
//   BHS (48) | AHS (0..1020) | header digest (0/4) | data, padded to 4 | data digest (0/4)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "pdu/bhs.h"
#include "pdu/digest.h"
#include "pdu/packer.h"

namespace sluice::pdu {

struct Pdu {
  Bhs header;
  uint32_t ahs_size = 0;  // bytes
  std::array<uint8_t, limits::kMaxAhsBytes> ahs;
  uint32_t data_size = 0;   // bytes, without padding
  std::vector<Slice> data;  // sums to data_size

  ByteView ahs_bytes() const { return {ahs.data(), ahs_size}; }
};

class Framer {
 public:
  enum class Event : uint8_t {
    kNeedMore,           // input is used up
    kPdu,                // pdu() is complete; its data may be moved out
    kDataDigestError,    // pdu() is complete but its data segment is damaged (and dropped)
    kHeaderDigestError,  // the rest of the stream is unusable
    kSegmentTooLong,     // DataSegmentLength above the limit: header valid, stream unusable
    kAhsTooLong,         // TotalAHSLength above the limit: header valid, stream unusable
  };

  // Consumes bytes from the front of `input` until a PDU or the input ends. After one of the last
  // three events the framer must not be used again.
  Event next(Slice& input);

  Pdu& pdu() { return pdu_; }

  void set_digests(bool header, bool data) {
    header_digest_ = header;
    data_digest_ = data;
  }
  // Maximum size of a data segment in bytes: the declared MaxRecvDataSegmentLength.
  void set_max_segment(uint32_t bytes) { max_segment_ = bytes; }
  // Maximum AHS size in bytes; 0 before the full feature phase.
  void set_max_ahs(uint32_t bytes) { max_ahs_ = bytes; }
  // Whether the stream is between two PDUs.
  bool at_boundary() const { return stage_ == Stage::kHeader && have_ == 0; }

 private:
  enum class Stage : uint8_t { kHeader, kAhs, kHeaderDigest, kData, kTrailer };

  bool collect(Slice& input, uint8_t* into, uint32_t need);
  Event after_header();
  Event take_header_digest();
  void take_data(Slice& input);
  Event finish();
  uint32_t trailer_size() const {
    return padded(pdu_.data_size) - pdu_.data_size + (data_digest_ ? 4 : 0);
  }

  Pdu pdu_;
  Packer packer_;  // of pdu_.data
  Stage stage_ = Stage::kHeader;
  bool header_digest_ = false;
  bool data_digest_ = false;
  uint32_t max_segment_ = limits::kMaxLoginSegment;
  uint32_t max_ahs_ = 0;
  uint32_t have_ = 0;  // bytes received of the current stage
  Digest digest_;
  std::array<uint8_t, 8> trailer_{};  // padding and data digest, or the header digest
};

}  // namespace sluice::pdu
