#include "load/tx_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <vector>

namespace sluice::bench {
namespace {

using Bytes = std::vector<uint8_t>;

struct Pipe {
  Pipe() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  Bytes take() {
    Bytes all;
    uint8_t block[65536];
    for (;;) {
      const ssize_t n = recv(ends[1], block, sizeof block, MSG_DONTWAIT);
      if (n <= 0) return all;
      all.insert(all.end(), block, block + n);
    }
  }
  int ends[2];
};

pdu::Bhs header_of(uint32_t tag) {
  pdu::Bhs header;
  header.set_itt(tag);
  return header;
}

TEST(TxQueue, PadsAndDigestsWhatItSends) {
  Pipe pipe;
  TxQueue queue;
  queue.set_digests({.header = true, .data = true, .constant_payload = false});
  const Bytes data = {1, 2, 3, 4, 5};
  queue.add(header_of(9), data.data(), 5);
  ASSERT_TRUE(queue.flush(pipe.ends[0]));
  EXPECT_TRUE(queue.empty());
  const Bytes sent = pipe.take();
  ASSERT_EQ(sent.size(), 48u + 4 + 8 + 4);
  EXPECT_TRUE(digest_matches(&sent[48], digest_extend(kDigestStart, sent.data(), 48)));
  EXPECT_EQ(Bytes(sent.begin() + 52, sent.begin() + 60), (Bytes{1, 2, 3, 4, 5, 0, 0, 0}));
  EXPECT_TRUE(digest_matches(&sent[60], digest_extend(kDigestStart, &sent[52], 8)));
}

TEST(TxQueue, NothingIsLostOrReorderedWhenTheSocketIsFull) {
  Pipe pipe;
  TxQueue queue;
  const Bytes data(50001, 0x42);
  Bytes got;
  constexpr uint32_t kCount = 700;  // more than one send gathers
  for (uint32_t i = 0; i < kCount; ++i) {
    queue.add(header_of(i), data.data(), i % 3 == 0 ? 50001 : 0);
    if (i % 100 == 99) {
      ASSERT_TRUE(queue.flush(pipe.ends[0]));
    }
  }
  while (!queue.empty()) {
    ASSERT_TRUE(queue.flush(pipe.ends[0]));
    const Bytes more = pipe.take();
    got.insert(got.end(), more.begin(), more.end());
  }
  size_t at = 0;
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_LE(at + 48, got.size());
    ASSERT_EQ(load_be32(&got[at + 16]), i);
    at += 48 + (i % 3 == 0 ? 50004 : 0);
  }
  EXPECT_EQ(at, got.size());
}

std::vector<uint32_t> tags_of(const Bytes& sent) {
  std::vector<uint32_t> tags;
  for (size_t at = 0; at + 48 <= sent.size();) {
    pdu::Bhs header;
    std::memcpy(header.data(), &sent[at], 48);
    tags.push_back(header.itt());
    at += 48 + pdu::padded(header.data_length());
  }
  return tags;
}

TEST(TxQueue, WhatIsAddedNextGoesBeforeAllThatIsNotPartlySent) {
  Pipe pipe;
  TxQueue queue;
  const Bytes data(1000000, 0);
  const auto add = [&](uint32_t tag) {
    pdu::Bhs header = header_of(tag);
    header.set_data_length(1000000);
    queue.add(header, data.data(), 1000000);
  };
  queue.add_next(header_of(100));
  add(1);
  queue.add_next(header_of(101));  // nothing was sent yet
  Bytes got;
  ASSERT_TRUE(queue.flush(pipe.ends[0]));
  ASSERT_FALSE(queue.empty()) << "the first is partly sent";
  add(2);
  queue.add_next(header_of(102));
  add(3);
  queue.add_next(header_of(103));
  const auto drain = [&] {
    do {
      const Bytes more = pipe.take();
      got.insert(got.end(), more.begin(), more.end());
      ASSERT_TRUE(queue.flush(pipe.ends[0]));
    } while (!queue.empty());
    const Bytes more = pipe.take();
    got.insert(got.end(), more.begin(), more.end());
  };
  drain();
  EXPECT_EQ(tags_of(got), (std::vector<uint32_t>{100, 101, 1, 102, 103, 2, 3}));
  // And nothing of that is remembered.
  got.clear();
  add(4);
  queue.add_next(header_of(104));
  drain();
  EXPECT_EQ(tags_of(got), (std::vector<uint32_t>{104, 4}));
}

TEST(TxQueue, WhatIsAddedNextKeepsItsPlaceWhenOldMessagesAreDropped) {
  Pipe pipe;
  TxQueue queue;
  const Bytes data(1024, 0);
  std::vector<uint32_t> want;
  Bytes got;
  const auto add = [&](uint32_t tag) {
    pdu::Bhs header = header_of(tag);
    header.set_data_length(1024);
    queue.add(header, data.data(), 1024);
  };
  // More than one send gathers, so that the head of the queue is cut off in between.
  for (uint32_t i = 0; i < 600; ++i) add(i);
  uint32_t urgent = 0;
  while (!queue.empty()) {
    queue.add_next(header_of(10000 + urgent++));
    ASSERT_TRUE(queue.flush(pipe.ends[0]));
    const Bytes more = pipe.take();
    got.insert(got.end(), more.begin(), more.end());
  }
  const std::vector<uint32_t> tags = tags_of(got);
  ASSERT_EQ(tags.size(), 600u + urgent);
  ASSERT_GT(urgent, 2u);
  uint32_t data_next = 0;
  uint32_t urgent_next = 10000;
  for (const uint32_t tag : tags) EXPECT_EQ(tag, tag < 10000 ? data_next++ : urgent_next++);
  EXPECT_NE(tags.back(), 10000 + urgent - 1) << "the last did not wait for all data";
}

TEST(TxQueue, AGoneConnectionIsReported) {
  Pipe pipe;
  shutdown(pipe.ends[1], SHUT_RDWR);
  TxQueue queue;
  queue.add(header_of(1), nullptr, 0);
  EXPECT_FALSE(queue.flush(pipe.ends[0]));
}

}  // namespace
}  // namespace sluice::bench
