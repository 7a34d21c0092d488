#include "iscsi/outbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace sluice::iscsi {
namespace {

std::string drain(Outbox& out, size_t vectors, size_t per_send) {
  std::string all;
  while (out.ready()) {
    size_t n = 0;
    for (const iovec& v : out.take(vectors)) {
      const size_t take = std::min(v.iov_len, per_send - n);
      all.append(static_cast<const char*>(v.iov_base), take);
      n += take;
      if (n == per_send) break;
    }
    out.sent(n);
  }
  return all;
}

void put(Outbox& out, const std::string& text) {
  std::memcpy(out.header(static_cast<uint32_t>(text.size())), text.data(), text.size());
}

TEST(Outbox, SendsBytesInOrderHoweverShortTheSends) {
  for (const size_t per_send : {size_t{1}, size_t{3}, size_t{50}, size_t{100000}}) {
    for (const size_t vectors : {size_t{1}, size_t{2}, size_t{64}}) {
      Outbox out;
      std::string expected;
      std::string payload(700, 'p');
      for (int i = 0; i < 50; ++i) {
        const std::string header(48, static_cast<char>('a' + i % 26));
        put(out, header);
        expected += header;
        if (i % 3 == 0) {
          out.payload({BufferRef(), reinterpret_cast<uint8_t*>(payload.data()), 700});
          expected += payload;
        }
      }
      EXPECT_EQ(out.bytes(), expected.size());
      EXPECT_EQ(drain(out, vectors, per_send), expected);
      EXPECT_TRUE(out.empty());
    }
  }
}

TEST(Outbox, JoinsConsecutiveHeaders) {
  Outbox out;
  for (int i = 0; i < 32; ++i) put(out, std::string(48, 'h'));
  EXPECT_EQ(out.take(512).size(), 1u);
  out.sent(32 * 48);
}

TEST(Outbox, FillsTheNextBatchWhileOneIsInFlight) {
  Outbox out;
  put(out, "first");
  const auto first = out.take(8);
  EXPECT_FALSE(out.ready());
  put(out, "second");
  EXPECT_EQ(std::memcmp(first[0].iov_base, "first", 5), 0);
  out.sent(5);
  ASSERT_TRUE(out.ready());
  EXPECT_EQ(std::memcmp(out.take(8)[0].iov_base, "second", 6), 0);
  out.sent(6);
  EXPECT_TRUE(out.empty());
}

TEST(Outbox, HoldsPayloadsUntilTheirBatchIsSent) {
  BufferPool pool(size_t{1} << 20);
  Outbox out;
  BufferRef buffer = pool.allocate(4096);
  uint8_t* data = buffer.data();
  out.payload({std::move(buffer), data, 4096});
  EXPECT_EQ(pool.in_use(), 4096u);
  ASSERT_EQ(out.take(1).size(), 1u);
  out.sent(4000);
  EXPECT_EQ(pool.in_use(), 4096u);
  ASSERT_EQ(out.take(1).size(), 1u);
  out.sent(96);
  EXPECT_EQ(pool.in_use(), 0u);
}

TEST(Outbox, DropsQueuedPdusImmediatelyExceptASendInFlight) {
  for (const bool in_flight : {false, true}) {
    BufferPool pool(size_t{8} << 20);
    Outbox out;
    const auto add = [&](uint32_t bytes) {
      out.begin();
      put(out, "head");
      BufferRef buffer = pool.allocate(bytes);
      uint8_t* data = buffer.data();
      std::memset(data, 'p', bytes);
      out.payload({std::move(buffer), data, bytes});
    };
    add(4096);
    const auto sending = out.take(8);
    if (!in_flight) out.sent(5);
    for (size_t bytes = 0; bytes < Outbox::kBatch + 1; bytes += BufferPool::kLargest) {
      add(BufferPool::kLargest);
    }
    out.ahead([&] { add(16384); });
    out.discard();
    EXPECT_FALSE(out.ready());
    if (in_flight) {
      EXPECT_EQ(pool.in_use(), 4096u);
      EXPECT_EQ(std::memcmp(sending[0].iov_base, "head", 4), 0);
      EXPECT_EQ(static_cast<const uint8_t*>(sending[1].iov_base)[4095], 'p');
      out.sent(5);
    }
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_TRUE(out.empty());
  }
}

TEST(Outbox, IgnoresPdusWrittenAfterADiscard) {
  BufferPool pool(size_t{1} << 20);
  Outbox out;
  put(out, "before");
  out.discard();
  for (int i = 0; i < 100; ++i) {
    const auto write = [&] {
      out.begin();
      uint8_t* header = out.header(48);
      out.numbered();
      std::memset(header, 'h', 48);
      std::memset(out.header(Outbox::kArenaChunk), 'd', Outbox::kArenaChunk);
      BufferRef buffer = pool.allocate(4096);
      uint8_t* data = buffer.data();
      out.payload({std::move(buffer), data, 4096});
      EXPECT_EQ(header[0], 'h') << "a PDU has memory of its own";
    };
    i % 2 ? write() : out.ahead(write);
    EXPECT_EQ(pool.in_use(), 0u);
    EXPECT_FALSE(out.ready());
  }
  out.discard();
  EXPECT_TRUE(out.empty());
}

// A batch without a limit would delay urgent PDUs.
TEST(Outbox, ABatchEndsBetweenTwoPdus) {
  Outbox out;
  std::string payload(Outbox::kBatch, 'p');
  for (int i = 0; i < 3; ++i) {
    out.begin();
    put(out, "head");
    out.payload({BufferRef(), reinterpret_cast<uint8_t*>(payload.data()), Outbox::kBatch});
    put(out, "end");
  }
  EXPECT_EQ(out.bytes(), 3 * (Outbox::kBatch + 7));
  for (int i = 0; i < 3; ++i) {
    size_t n = 0;
    for (const iovec& v : out.take(64)) n += v.iov_len;
    EXPECT_EQ(n, Outbox::kBatch + 7);
    out.sent(n);
  }
  EXPECT_TRUE(out.empty());
}

TEST(Outbox, SendsUrgentPdusBeforeAllPdusThatAreNotInFlight) {
  Outbox out;
  std::string large(Outbox::kBatch, 'l');
  const auto add = [&out](const std::string& text) {
    out.begin();
    put(out, text);
    out.numbered();
  };
  add("in flight,");
  EXPECT_EQ(out.take(8).size(), 1u);
  EXPECT_EQ(out.overtaken(), 0u);
  add("waits,");
  out.payload({BufferRef(), reinterpret_cast<uint8_t*>(large.data()), Outbox::kBatch});
  add("last,");
  EXPECT_EQ(out.overtaken(), 2u);
  out.ahead([&] { put(out, "first,"); });
  out.ahead([&] { put(out, "second,"); });
  EXPECT_EQ(out.overtaken(), 2u);
  EXPECT_FALSE(out.ready());
  out.sent(3);
  EXPECT_EQ(drain(out, 8, 100000), "flight,first,second,waits," + large + "last,");
}

TEST(Outbox, SendsAnUrgentPduImmediatelyIfNoPduIsQueued) {
  Outbox out;
  out.ahead([&] { put(out, "urgent,"); });
  out.begin();
  put(out, "next");
  EXPECT_EQ(out.take(8).size(), 2u) << "one send takes both";
  out.sent(11);
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace sluice::iscsi
