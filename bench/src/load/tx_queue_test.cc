#include "load/tx_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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

TEST(TxQueue, AGoneConnectionIsReported) {
  Pipe pipe;
  shutdown(pipe.ends[1], SHUT_RDWR);
  TxQueue queue;
  queue.add(header_of(1), nullptr, 0);
  EXPECT_FALSE(queue.flush(pipe.ends[0]));
}

}  // namespace
}  // namespace sluice::bench
