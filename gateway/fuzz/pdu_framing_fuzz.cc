// The same bytes, split arbitrarily, give the same PDUs: from lent memory; and from receive
// buffers, whose small pieces are packed (packer.h) or stay in place because the pool is exhausted.
// An input: digests (1 byte), maximum segment and AHS (1 byte each, squared and scaled), a seed for
// the splits (1 byte), the stream.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
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

static_assert(limits::kPackingBuffer > BufferPool::kClassSizes[0]);

// Receives as a reactor does: some pieces directly behind the previous one in its buffer, others in
// a new buffer.
class Buffers {
 public:
  enum class Pool : uint8_t { kNone, kLarge, kScarce, kSpent };
  explicit Buffers(Pool pool) : which_(pool) {
    if (pool != Pool::kNone) spend();
  }

  static constexpr uint32_t kMost = BufferPool::kClassSizes[0];

  // At most kMost bytes, except for lent memory.
  Slice receive(uint8_t* from, uint32_t n, bool behind) {
    if (which_ == Pool::kNone) return {{}, from, n};
    if (!behind || !buffer_ || kMost - received_[buffer_.get()] < n) {
      if (!taken_.empty()) taken_.pop_back();
      buffer_ = pool_.allocate(kMost);
      if (!buffer_) return {{}, from, n};
      received_[buffer_.get()] = 0;
      spend();
    }
    uint32_t& received = received_[buffer_.get()];
    uint8_t* to = buffer_.data() + received;
    std::memcpy(to, from, n);
    received += n;
    return {buffer_, to, n};
  }
  // Bytes behind the received ones may belong to another connection; packed data is in larger
  // buffers.
  bool holds(const Slice& slice) const {
    if (!slice.owner) return true;
    const uint32_t capacity = slice.owner.capacity();
    const uint32_t held = capacity == kMost ? received_.at(slice.owner.get()) : capacity;
    const uint8_t* begin = slice.owner.data();
    return slice.data >= begin && slice.data + slice.size <= begin + held;
  }
  // No references are left.
  ~Buffers() {
    buffer_ = {};
    taken_.clear();
    if (pool_.in_use() != 0) std::abort();
  }

 private:
  static constexpr size_t kBeginning = 8;  // buffers

  // Leaves no memory for packing, or only for the beginning.
  void spend() {
    if (which_ == Pool::kLarge) return;
    const bool some = which_ == Pool::kScarce && received_.size() < kBeginning;
    const uint32_t left = some ? limits::kPackingBuffer : 0;
    while (pool_.available() >= left + kMost) {
      taken_.push_back(pool_.allocate(kMost));
      if (!taken_.back()) return;
    }
  }

  const Pool which_;
  BufferPool pool_{size_t{2} << 20};
  std::vector<BufferRef> taken_;
  BufferRef buffer_;
  std::map<const Buffer*, uint32_t> received_;  // latest size in bytes
};

Seen see(Event event, pdu::Framer& framer, const Buffers& buffers) {
  pdu::Pdu& pdu = framer.pdu();
  Seen seen{event, {}, {}, {}};
  seen.header.assign(pdu.header.bytes.begin(), pdu.header.bytes.end());
  if (fatal(event)) return seen;
  const ByteView ahs = pdu.ahs_bytes();
  seen.ahs.assign(ahs.begin(), ahs.end());
  for (const Slice& s : pdu.data) {
    if (!buffers.holds(s)) std::abort();
    seen.data.insert(seen.data.end(), s.data, s.data + s.size);
  }
  if (event == Event::kPdu && seen.data.size() != pdu.data_size) std::abort();
  return seen;
}

std::vector<Seen> frame(const uint8_t* rules, std::vector<uint8_t>& stream, uint8_t seed,
                        Buffers::Pool pool) {
  Buffers buffers(pool);
  pdu::Framer framer;
  framer.set_digests(rules[0] & 1, rules[0] & 2);
  framer.set_max_segment(uint32_t{rules[1]} * rules[1]);
  framer.set_max_ahs(std::min<uint32_t>(uint32_t{rules[2]} * 4, limits::kMaxAhsBytes));
  std::vector<Seen> all;
  uint32_t state = seed;
  for (size_t at = 0; at < stream.size();) {
    state = state * 1664525 + 1013904223;
    const uint32_t most = (seed & 2) != 0 && state >> 28 == 0 ? 6000 : 97;
    const size_t want = seed == 0 ? stream.size() : 1 + (state >> 12) % most;
    size_t n = std::min(want, stream.size() - at);
    if (pool != Buffers::Pool::kNone) n = std::min<size_t>(n, Buffers::kMost);
    Slice piece =
        buffers.receive(stream.data() + at, static_cast<uint32_t>(n), (state >> 27 & 1) != 0);
    at += n;
    while (true) {
      const Event event = framer.next(piece);
      if (event == Event::kNeedMore) break;
      all.push_back(see(event, framer, buffers));
      if (fatal(event)) return all;
    }
    if (piece.size != 0) std::abort();  // all input is consumed
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  std::vector<uint8_t> stream(data + 4, data + size);
  using Pool = Buffers::Pool;
  const std::vector<Seen> whole = frame(data, stream, 0, Pool::kNone);
  for (const Pool pool : {Pool::kNone, Pool::kLarge, Pool::kScarce, Pool::kSpent}) {
    if (frame(data, stream, data[3] | 1, pool) != whole) std::abort();
  }
  return 0;
}
