// The same bytes, cut in any way, give the same PDUs. An input: digests (1 byte), maximum segment
// and AHS (1 byte each, scaled), a seed for the cuts (1 byte), the stream.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "pdu/framer.h"

namespace {

using namespace sluice;
using Event = pdu::Framer::Event;

struct Seen {
  Event event;
  std::vector<uint8_t> header;
  std::vector<uint8_t> ahs;
  std::vector<uint8_t> data;
  bool operator==(const Seen&) const = default;
};

bool fatal(Event e) {
  return e == Event::kHeaderDigestError || e == Event::kSegmentTooLong || e == Event::kAhsTooLong;
}

Seen see(Event event, pdu::Framer& framer) {
  pdu::Pdu& pdu = framer.pdu();
  Seen seen{event, {}, {}, {}};
  seen.header.assign(pdu.header.bytes.begin(), pdu.header.bytes.end());
  if (fatal(event)) return seen;
  const ByteView ahs = pdu.ahs_bytes();
  seen.ahs.assign(ahs.begin(), ahs.end());
  for (const Slice& s : pdu.data) seen.data.insert(seen.data.end(), s.data, s.data + s.size);
  if (event == Event::kPdu && seen.data.size() != pdu.data_size) std::abort();
  return seen;
}

std::vector<Seen> frame(const uint8_t* rules, std::vector<uint8_t>& stream, uint8_t seed) {
  pdu::Framer framer;
  framer.set_digests(rules[0] & 1, rules[0] & 2);
  framer.set_max_segment(uint32_t{rules[1]} * 64);
  framer.set_max_ahs(std::min<uint32_t>(uint32_t{rules[2]} * 4, limits::kMaxAhsBytes));
  std::vector<Seen> all;
  uint32_t state = seed;
  for (size_t at = 0; at < stream.size();) {
    state = state * 1664525 + 1013904223;
    const size_t want = seed == 0 ? stream.size() : 1 + (state >> 16) % 97;
    const auto n = static_cast<uint32_t>(std::min(want, stream.size() - at));
    Slice piece{{}, stream.data() + at, n};
    at += n;
    while (true) {
      const Event event = framer.next(piece);
      if (event == Event::kNeedMore) break;
      all.push_back(see(event, framer));
      if (fatal(event)) return all;
    }
    if (piece.size != 0) std::abort();  // it takes everything
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  std::vector<uint8_t> stream(data + 4, data + size);
  const std::vector<Seen> whole = frame(data, stream, 0);
  const std::vector<Seen> cut = frame(data, stream, data[3] | 1);
  if (whole != cut) std::abort();
  return 0;
}
