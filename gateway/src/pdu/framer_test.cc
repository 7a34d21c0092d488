#include "pdu/framer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice::pdu {
namespace {

using Event = Framer::Event;

std::vector<uint8_t> with_digest(std::vector<uint8_t> bytes, size_t from) {
  Digest d;
  d.update(bytes.data() + from, static_cast<uint32_t>(bytes.size() - from));
  bytes.resize(bytes.size() + 4);
  d.store(bytes.data() + bytes.size() - 4);
  return bytes;
}

struct Shape {
  bool header_digest = false;
  bool data_digest = false;
};

std::vector<uint8_t> make(uint32_t itt, uint32_t data_size, uint8_t ahs_words, Shape shape) {
  Bhs h;
  h.set_opcode(Opcode::kNopOut);
  h.set_itt(itt);
  h.put8(4, ahs_words);
  h.set_data_length(data_size);
  std::vector<uint8_t> out(h.bytes.begin(), h.bytes.end());
  for (uint32_t i = 0; i < ahs_words * 4u; ++i) out.push_back(static_cast<uint8_t>(0x40 + i));
  if (shape.header_digest) out = with_digest(out, 0);
  const size_t data_at = out.size();
  for (uint32_t i = 0; i < data_size; ++i) out.push_back(static_cast<uint8_t>(itt + i));
  while (out.size() % 4) out.push_back(0);
  if (shape.data_digest && data_size) out = with_digest(out, data_at);
  return out;
}

std::vector<uint8_t> data_of(const Pdu& pdu) {
  std::vector<uint8_t> out;
  for (const Slice& s : pdu.data) out.insert(out.end(), s.data, s.data + s.size);
  return out;
}

class Framing : public testing::TestWithParam<Shape> {};

TEST_P(Framing, FindsTheSamePdusInAnySegmentationOfTheStream) {
  std::vector<uint8_t> stream;
  const std::vector<uint32_t> sizes = {0, 1, 3, 4, 48, 511, 512, 0, 7};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto pdu = make(static_cast<uint32_t>(i), sizes[i], i % 3 == 0 ? 2 : 0, GetParam());
    stream.insert(stream.end(), pdu.begin(), pdu.end());
  }
  for (size_t piece = 1; piece <= 97; ++piece) {
    Framer framer;
    framer.set_digests(GetParam().header_digest, GetParam().data_digest);
    framer.set_max_ahs(64);
    size_t found = 0;
    for (size_t at = 0; at < stream.size(); at += piece) {
      const auto n = static_cast<uint32_t>(std::min(piece, stream.size() - at));
      Slice in{BufferRef(), stream.data() + at, n};
      while (framer.next(in) == Event::kPdu) {
        Pdu& pdu = framer.pdu();
        ASSERT_LT(found, sizes.size());
        EXPECT_EQ(pdu.header.itt(), found);
        EXPECT_EQ(pdu.data_size, sizes[found]);
        const auto data = data_of(pdu);
        ASSERT_EQ(data.size(), sizes[found]);
        for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], uint8_t(found + i));
        EXPECT_EQ(pdu.ahs_size, found % 3 == 0 ? 8u : 0u);
        if (pdu.ahs_size) {
          EXPECT_EQ(pdu.ahs[7], 0x47);
        }
        ++found;
      }
      ASSERT_EQ(in.size, 0u);
    }
    EXPECT_EQ(found, sizes.size()) << "pieces of " << piece;
    EXPECT_TRUE(framer.at_boundary());
  }
}

TEST_P(Framing, JoinsAdjacentPiecesOfOneBuffer) {
  auto bytes = make(1, 400, 0, GetParam());
  Framer framer;
  framer.set_digests(GetParam().header_digest, GetParam().data_digest);
  Event e = Event::kNeedMore;
  for (size_t at = 0; at < bytes.size(); at += 16) {
    Slice in{BufferRef(), bytes.data() + at,
             static_cast<uint32_t>(std::min<size_t>(16, bytes.size() - at))};
    e = framer.next(in);
  }
  ASSERT_EQ(e, Event::kPdu);
  EXPECT_EQ(framer.pdu().data.size(), 1u);
}

// As a kernel without incremental buffers receives: every piece in a buffer of its own.
Event receive(Framer& framer, BufferPool& pool, ByteView bytes) {
  BufferRef buffer = pool.allocate(limits::kReceiveBufferSize);
  EXPECT_TRUE(buffer);
  if (!buffer) return Event::kNeedMore;
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  Slice in{buffer, buffer.data(), static_cast<uint32_t>(bytes.size())};
  const Event e = framer.next(in);
  EXPECT_EQ(in.size, 0u);
  return e;
}

TEST_P(Framing, PinsLittleMemoryForASegmentThatArrivesByteByByte) {
  BufferPool pool(size_t{1} << 20);
  const auto bytes = make(1, limits::kMaxLoginSegment, 0, GetParam());
  Framer framer;
  framer.set_digests(GetParam().header_digest, GetParam().data_digest);
  Event e = Event::kNeedMore;
  for (size_t at = 0; at < bytes.size(); ++at) {
    ASSERT_EQ(e, Event::kNeedMore);
    e = receive(framer, pool, ByteView(bytes).subspan(at, 1));
    ASSERT_LE(pool.in_use(), size_t{128} << 10) << "after " << at + 1 << " bytes";
  }
  ASSERT_EQ(e, Event::kPdu);
  const auto data = data_of(framer.pdu());
  ASSERT_EQ(data.size(), limits::kMaxLoginSegment);
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], uint8_t(1 + i));
  framer.pdu().data.clear();
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST_P(Framing, PinsLittleMoreThanTheSizeOfASegmentThatArrivesInEthernetPackets) {
  constexpr uint32_t kPacket = 1448;
  constexpr uint32_t kBytes = 1u << 20;
  BufferPool pool(size_t{16} << 20);
  const auto bytes = make(1, kBytes, 0, GetParam());
  Framer framer;
  framer.set_digests(GetParam().header_digest, GetParam().data_digest);
  framer.set_max_segment(kBytes);
  Event e = Event::kNeedMore;
  for (size_t at = 0; at < bytes.size(); at += kPacket) {
    const size_t n = std::min<size_t>(kPacket, bytes.size() - at);
    e = receive(framer, pool, ByteView(bytes).subspan(at, n));
    ASSERT_LE(pool.in_use(), at + at / 8 + (size_t{128} << 10));
  }
  ASSERT_EQ(e, Event::kPdu);
  const auto data = data_of(framer.pdu());
  ASSERT_EQ(data.size(), kBytes);
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], uint8_t(1 + i));
}

INSTANTIATE_TEST_SUITE_P(Digests, Framing,
                         testing::Values(Shape{false, false}, Shape{true, false},
                                         Shape{false, true}, Shape{true, true}));

Event feed(Framer& framer, std::vector<uint8_t>& bytes) {
  Slice in{BufferRef(), bytes.data(), static_cast<uint32_t>(bytes.size())};
  return framer.next(in);
}

TEST(Framer, ReportsADamagedHeader) {
  for (size_t at = 0; at < kBhsSize + 4; ++at) {
    auto bytes = make(1, 0, 0, {true, false});
    bytes[at] ^= 0x10;
    Framer framer;
    framer.set_digests(true, false);
    framer.set_max_ahs(limits::kMaxAhsBytes);
    const Event e = feed(framer, bytes);
    // A damaged length asks for bytes that don't come; nothing damaged ever passes.
    EXPECT_TRUE(e == Event::kHeaderDigestError || (at == 4 && e == Event::kNeedMore)) << at;
  }
}

TEST(Framer, DropsDamagedDataAndContinuesWithTheNextPdu) {
  auto bytes = make(1, 100, 0, {false, true});
  bytes[kBhsSize + 50] ^= 1;
  const auto next = make(2, 8, 0, {false, true});
  bytes.insert(bytes.end(), next.begin(), next.end());
  Framer framer;
  framer.set_digests(false, true);
  Slice in{BufferRef(), bytes.data(), static_cast<uint32_t>(bytes.size())};
  EXPECT_EQ(framer.next(in), Event::kDataDigestError);
  EXPECT_EQ(framer.pdu().header.itt(), 1u);
  EXPECT_TRUE(framer.pdu().data.empty());
  EXPECT_EQ(framer.next(in), Event::kPdu);
  EXPECT_EQ(framer.pdu().header.itt(), 2u);
}

TEST(Framer, DetectsDamagedPaddingByTheDataDigest) {
  auto bytes = make(1, 5, 0, {false, true});
  bytes[kBhsSize + 6] ^= 1;
  Framer framer;
  framer.set_digests(false, true);
  EXPECT_EQ(feed(framer, bytes), Event::kDataDigestError);
}

TEST(Framer, RefusesASegmentAboveTheLimitBeforeReadingIt) {
  Framer framer;
  framer.set_max_segment(512);
  auto fits = make(1, 512, 0, {});
  EXPECT_EQ(feed(framer, fits), Event::kPdu);
  Bhs h;
  h.set_data_length(513);
  std::vector<uint8_t> header(h.bytes.begin(), h.bytes.end());
  EXPECT_EQ(feed(framer, header), Event::kSegmentTooLong);
}

TEST(Framer, RefusesAdditionalHeadersAboveTheLimit) {
  Framer framer;
  Bhs h;
  h.put8(4, 1);
  std::vector<uint8_t> header(h.bytes.begin(), h.bytes.end());
  EXPECT_EQ(feed(framer, header), Event::kAhsTooLong);
}

TEST(Framer, RetainsReceiveBuffersThroughItsSlices) {
  BufferPool pool(size_t{1} << 20);
  auto bytes = make(1, 64, 0, {});
  Framer framer;
  {
    BufferRef buffer = pool.allocate(4096);
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    Slice in{buffer, buffer.data(), static_cast<uint32_t>(bytes.size())};
    ASSERT_EQ(framer.next(in), Event::kPdu);
  }
  EXPECT_EQ(pool.in_use(), 4096u);
  framer.pdu().data.clear();
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Framer, DeliversLargePiecesAndTheLastOneWithoutCopying) {
  BufferPool pool(size_t{1} << 20);
  Framer framer;
  const std::vector<uint32_t> sizes = {limits::kPackedPiece, 50000, limits::kPackedPiece, 100};
  framer.set_max_segment(limits::kMaxSegment);
  const uint32_t total = std::accumulate(sizes.begin(), sizes.end(), 0u);
  auto bytes = make(1, total, 0, {});
  Slice header{BufferRef(), bytes.data(), kBhsSize};
  ASSERT_EQ(framer.next(header), Event::kNeedMore);
  std::vector<const uint8_t*> places;
  Event e = Event::kNeedMore;
  for (const uint32_t size : sizes) {
    BufferRef buffer = pool.allocate(limits::kReceiveBufferSize);
    places.push_back(buffer.data());
    Slice in{buffer, buffer.data(), size};
    e = framer.next(in);
  }
  ASSERT_EQ(e, Event::kPdu);
  ASSERT_EQ(framer.pdu().data.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(framer.pdu().data[i].data, places[i]) << i;
}

TEST(Framer, DoesNotCopySmallPiecesOfOneBuffer) {
  BufferPool pool(size_t{1} << 20);
  Framer framer;
  const auto bytes = make(1, limits::kMaxLoginSegment, 0, {});
  BufferRef buffer = pool.allocate(limits::kReceiveBufferSize);
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  Event e = Event::kNeedMore;
  for (size_t at = 0; at < bytes.size(); at += 16) {
    Slice in{buffer, buffer.data() + at, 16};
    e = framer.next(in);
  }
  ASSERT_EQ(e, Event::kPdu);
  ASSERT_EQ(framer.pdu().data.size(), 1u);
  EXPECT_EQ(framer.pdu().data[0].data, buffer.data() + kBhsSize);
}

TEST(Framer, PreservesTheOrderOfSmallAndLargePieces) {
  BufferPool pool(size_t{64} << 20);
  Framer framer;
  framer.set_max_segment(limits::kMaxSegment);
  const uint32_t total = 4u << 20;
  const auto bytes = make(1, total, 0, {});
  uint32_t random = 1;
  Event e = Event::kNeedMore;
  for (size_t at = 0; at < bytes.size();) {
    random = random * 1664525 + 1013904223;
    const size_t most = (random >> 8) % 4 == 0 ? 20000 : 5000;
    const size_t n = std::min<size_t>(1 + (random >> 12) % most, bytes.size() - at);
    e = receive(framer, pool, ByteView(bytes).subspan(at, n));
    at += n;
  }
  ASSERT_EQ(e, Event::kPdu);
  const auto data = data_of(framer.pdu());
  ASSERT_EQ(data.size(), total);
  for (size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], uint8_t(1 + i));
}

// What lies behind a piece in its buffer may be another connection's.
TEST(Framer, DoesNotWriteIntoReceiveBuffersEvenIfThePoolIsExhausted) {
  const std::vector<uint32_t> sizes = {100,  4000, 5000, 100, 100, 4000, 4000,
                                       4000, 4000, 4000, 100, 100, 100};
  const uint32_t total = std::accumulate(sizes.begin(), sizes.end(), 0u);
  for (const size_t packing_buffers : {0, 1, 2, 100}) {
    BufferPool pool(sizes.size() * limits::kReceiveBufferSize +
                    packing_buffers * limits::kPackingBuffer);
    Framer framer;
    framer.set_max_segment(total);
    auto bytes = make(1, total, 0, {});
    Slice header{BufferRef(), bytes.data(), kBhsSize};
    ASSERT_EQ(framer.next(header), Event::kNeedMore);
    std::vector<BufferRef> ring;
    for (size_t i = 0; i < sizes.size(); ++i) {
      ring.push_back(pool.allocate(limits::kReceiveBufferSize));
      ASSERT_TRUE(ring.back());
      std::memset(ring.back().data(), 0xee, limits::kReceiveBufferSize);
    }
    Event e = Event::kNeedMore;
    const uint8_t* from = bytes.data() + kBhsSize;
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::memcpy(ring[i].data(), from, sizes[i]);
      from += sizes[i];
      Slice in{ring[i], ring[i].data(), sizes[i]};
      e = framer.next(in);
    }
    ASSERT_EQ(e, Event::kPdu);
    const auto data = data_of(framer.pdu());
    EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes.begin() + kBhsSize, bytes.end()));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const ByteView behind{ring[i].data() + sizes[i], limits::kReceiveBufferSize - sizes[i]};
      EXPECT_TRUE(std::ranges::all_of(behind, [](uint8_t b) { return b == 0xee; })) << i;
    }
  }
}

}  // namespace
}  // namespace sluice::pdu
