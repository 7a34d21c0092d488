// Writes PDUs into an Outbox: header, digests and padding in the order of the wire
// (RFC 7143 §11.2). One PDU at a time: start(), data(), finish().
#pragma once

#include <cstdint>
#include <cstring>
#include <new>

#include "iscsi/outbox.h"
#include "pdu/bhs.h"
#include "pdu/digest.h"

namespace sluice::iscsi {

class PduWriter {
 public:
  explicit PduWriter(Outbox& out) : out_(out) {}

  void set_digests(bool header, bool data) {
    header_digest_ = header;
    data_digest_ = data;
  }

  // Returns a zeroed header. The caller fills it, and ahs() (whole words), before finish().
  pdu::Bhs& start(pdu::Opcode opcode, uint32_t ahs_size = 0) {
    out_.begin();
    uint8_t* memory = out_.header(pdu::kBhsSize + ahs_size + (header_digest_ ? 4 : 0));
    header_ = new (memory) pdu::Bhs();
    header_->set_opcode(opcode);
    header_->put8(4, static_cast<uint8_t>(ahs_size / 4));
    size_ = 0;
    if (data_digest_) digest_.reset();
    return *header_;
  }
  uint8_t* ahs() { return header_->data() + pdu::kBhsSize; }
  // Call it when the header's fields are complete, except for the data length.
  void data(Slice&& slice) {
    if (slice.size == 0) return;
    if (data_digest_) digest_.update(slice.data, slice.size);
    size_ += slice.size;
    out_.payload(std::move(slice));
  }
  void copy(ByteView bytes) {
    for (size_t at = 0; at < bytes.size(); at += Outbox::kArenaChunk) {
      const auto part = bytes.subspan(at, std::min<size_t>(Outbox::kArenaChunk, bytes.size() - at));
      const auto n = static_cast<uint32_t>(part.size());
      uint8_t* memory = out_.header(n);
      std::memcpy(memory, part.data(), n);
      if (data_digest_) digest_.update(memory, n);
      size_ += n;
    }
  }
  void finish() {
    header_->set_data_length(size_);
    if (header_digest_) close_header();
    if (size_ != 0) close_data();
  }

 private:
  void close_header() {
    pdu::Digest d;
    const uint32_t size = pdu::kBhsSize + header_->ahs_length();
    d.update(header_->data(), size);
    d.store(header_->data() + size);
  }
  void close_data() {
    const uint32_t padding = pdu::padded(size_) - size_;
    const uint32_t n = padding + (data_digest_ ? 4 : 0);
    if (n == 0) return;
    uint8_t* p = out_.header(n);
    std::memset(p, 0, padding);
    if (data_digest_) {
      digest_.update(p, padding);
      digest_.store(p + padding);
    }
  }

  Outbox& out_;
  pdu::Bhs* header_ = nullptr;
  uint32_t size_ = 0;
  bool header_digest_ = false;
  bool data_digest_ = false;
  pdu::Digest digest_;
};

}  // namespace sluice::iscsi
