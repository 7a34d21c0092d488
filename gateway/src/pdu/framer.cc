#include "pdu/framer.h"

#include <algorithm>

namespace sluice::pdu {
namespace {

void drop_front(Slice& input, uint32_t n) {
  input.data += n;
  input.size -= n;
}

}  // namespace

bool Framer::collect(Slice& input, uint8_t* into, uint32_t need) {
  const uint32_t n = std::min(need - have_, input.size);
  std::memcpy(into + have_, input.data, n);
  drop_front(input, n);
  have_ += n;
  if (have_ < need) return false;
  have_ = 0;
  return true;
}

Framer::Event Framer::after_header() {
  pdu_.ahs_size = pdu_.header.ahs_length();
  pdu_.data_size = pdu_.header.data_length();
  pdu_.data.clear();
  if (pdu_.ahs_size > max_ahs_) return Event::kAhsTooLong;
  // With a header digest the lengths are believed only once it has been checked.
  if (!header_digest_ && pdu_.data_size > max_segment_) return Event::kSegmentTooLong;
  stage_ = pdu_.ahs_size ? Stage::kAhs : header_digest_ ? Stage::kHeaderDigest : Stage::kData;
  return Event::kNeedMore;
}

Framer::Event Framer::take_header_digest() {
  digest_.reset();
  digest_.update(pdu_.header.data(), kBhsSize);
  digest_.update(pdu_.ahs.data(), pdu_.ahs_size);
  if (!digest_.matches(trailer_.data())) return Event::kHeaderDigestError;
  if (pdu_.data_size > max_segment_) return Event::kSegmentTooLong;
  stage_ = Stage::kData;
  return Event::kNeedMore;
}

void Framer::take_data(Slice& input) {
  const uint32_t n = std::min(pdu_.data_size - have_, input.size);
  if (n == 0) return;
  // Bytes that continue where the last piece of the same buffer ended make it longer instead of
  // adding a piece: receives are often smaller than segments.
  if (!pdu_.data.empty() && pdu_.data.back().owner.get() == input.owner.get() &&
      pdu_.data.back().data + pdu_.data.back().size == input.data) {
    pdu_.data.back().size += n;
  } else {
    packer_.add(pdu_.data, {input.owner, input.data, n});
  }
  drop_front(input, n);
  have_ += n;
}

Framer::Event Framer::finish() {
  stage_ = Stage::kHeader;
  if (!data_digest_ || pdu_.data_size == 0) return Event::kPdu;
  digest_.reset();
  for (const Slice& piece : pdu_.data) digest_.update(piece.data, piece.size);
  const uint32_t padding = padded(pdu_.data_size) - pdu_.data_size;
  digest_.update(trailer_.data(), padding);
  if (digest_.matches(trailer_.data() + padding)) return Event::kPdu;
  pdu_.data.clear();
  return Event::kDataDigestError;
}

Framer::Event Framer::next(Slice& input) {
  while (true) {
    switch (stage_) {
      case Stage::kHeader: {
        if (!collect(input, pdu_.header.data(), kBhsSize)) return Event::kNeedMore;
        const Event e = after_header();
        if (e != Event::kNeedMore) return e;
        break;
      }
      case Stage::kAhs:
        if (!collect(input, pdu_.ahs.data(), pdu_.ahs_size)) return Event::kNeedMore;
        stage_ = header_digest_ ? Stage::kHeaderDigest : Stage::kData;
        break;
      case Stage::kHeaderDigest: {
        if (!collect(input, trailer_.data(), 4)) return Event::kNeedMore;
        const Event e = take_header_digest();
        if (e != Event::kNeedMore) return e;
        break;
      }
      case Stage::kData:
        if (pdu_.data_size == 0) return finish();
        take_data(input);
        if (have_ < pdu_.data_size) return Event::kNeedMore;
        have_ = 0;
        stage_ = Stage::kTrailer;
        break;
      case Stage::kTrailer:
        if (!collect(input, trailer_.data(), trailer_size())) return Event::kNeedMore;
        return finish();
    }
  }
}

}  // namespace sluice::pdu
