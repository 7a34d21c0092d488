#include "echo/connection.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

namespace sluice::bench {
namespace {

using bare::Header;
using bare::Op;
using bare::Status;
using bare::Store;
using Bytes = std::vector<uint8_t>;

constexpr DigestChoice kNone;
constexpr DigestChoice kBoth{.header = true, .data = true};

Bytes encode(const Header& header, const Bytes& payload, DigestChoice digests) {
  Bytes out(header.bytes.begin(), header.bytes.end());
  const auto digest_of = [](const uint8_t* data, size_t size) {
    Bytes digest(kDigestSize);
    digest_store(digest.data(), digest_extend(kDigestStart, data, static_cast<uint32_t>(size)));
    return digest;
  };
  if (digests.header) {
    const Bytes digest = digest_of(header.data(), bare::kHeaderSize);
    out.insert(out.end(), digest.begin(), digest.end());
  }
  out.insert(out.end(), payload.begin(), payload.end());
  if (digests.data && !payload.empty()) {
    const Bytes digest = digest_of(payload.data(), payload.size());
    out.insert(out.end(), digest.begin(), digest.end());
  }
  return out;
}

Bytes hello(Store store, DigestChoice digests) {
  Header header;
  header.set_op(Op::kHello);
  header.set_store(store);
  header.set_digests(digests);
  return encode(header, {}, kNone);
}

Header request(Op op, uint64_t offset, uint32_t size, uint32_t tag) {
  Header header;
  header.set_op(op);
  header.set_offset(offset);
  header.set_tag(tag);
  header.set_payload(op == Op::kWrite ? size : 0);
  header.set_wanted(op == Op::kRead ? size : 0);
  return header;
}

// Everything queued for sending, in order, as the peer would see it.
Bytes drain(Connection& connection) {
  Bytes out;
  connection.swap_batches();
  const msghdr* message = connection.sending().message();
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    const auto* p = static_cast<const uint8_t*>(message->msg_iov[i].iov_base);
    out.insert(out.end(), p, p + message->msg_iov[i].iov_len);
  }
  connection.sending().clear();
  return out;
}

Header header_at(const Bytes& bytes, size_t at) {
  Header header;
  std::copy_n(bytes.begin() + static_cast<long>(at), bare::kHeaderSize, header.bytes.begin());
  return header;
}

class ConnectionTest : public testing::Test {
 protected:
  static constexpr size_t kFileSize = 64 << 10;

  void SetUp() override {
    char name[] = "/tmp/bare-echo-test-XXXXXX";
    const int fd = mkstemp(name);
    ASSERT_GE(fd, 0);
    path_ = name;
    ASSERT_EQ(ftruncate(fd, kFileSize), 0);
    close(fd);
    stores_ = std::make_unique<Stores>(kFileSize, path_);
    connection_ = std::make_unique<Connection>(*stores_);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  bool feed(const Bytes& bytes) {
    return connection_->input(bytes.data(), static_cast<uint32_t>(bytes.size()));
  }
  void greet(Store store, DigestChoice digests) {
    ASSERT_TRUE(feed(hello(store, digests)));
    const Bytes answer = drain(*connection_);
    ASSERT_EQ(answer.size(), bare::kHeaderSize);
    ASSERT_EQ(header_at(answer, 0).status(), Status::kGood);
  }

  std::string path_;
  std::unique_ptr<Stores> stores_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, WhatIsWrittenIsReadBackFromMemoryAndFromTheFile) {
  for (const Store store : {Store::kMemory, Store::kFile}) {
    connection_ = std::make_unique<Connection>(*stores_);
    greet(store, kNone);
    const Bytes data(512, static_cast<uint8_t>(0x30 + static_cast<int>(store)));
    ASSERT_TRUE(feed(encode(request(Op::kWrite, 1024, 512, 7), data, kNone)));
    const Bytes written = drain(*connection_);
    ASSERT_EQ(written.size(), bare::kHeaderSize);
    EXPECT_EQ(header_at(written, 0).tag(), 7u);
    ASSERT_TRUE(feed(encode(request(Op::kRead, 1024, 512, 8), {}, kNone)));
    const Bytes answer = drain(*connection_);
    ASSERT_EQ(answer.size(), bare::kHeaderSize + 512);
    EXPECT_EQ(header_at(answer, 0).payload(), 512u);
    EXPECT_EQ(Bytes(answer.begin() + bare::kHeaderSize, answer.end()), data);
  }
}

TEST_F(ConnectionTest, InputInSingleBytesMeansTheSameAsWhole) {
  for (const DigestChoice digests :
       {kNone, DigestChoice{.header = true}, DigestChoice{.data = true}, kBoth}) {
    connection_ = std::make_unique<Connection>(*stores_);
    greet(Store::kMemory, digests);
    Bytes stream = encode(request(Op::kWrite, 0, 32, 1), Bytes(32, 0xab), digests);
    const Bytes read = encode(request(Op::kRead, 0, 32, 2), {}, digests);
    stream.insert(stream.end(), read.begin(), read.end());
    for (const uint8_t byte : stream) ASSERT_TRUE(feed({byte}));
    Header first;
    first.set_op(Op::kWrite);
    first.set_tag(1);
    Header second;
    second.set_op(Op::kRead);
    second.set_tag(2);
    second.set_payload(32);
    Bytes expected = encode(first, {}, digests);
    const Bytes rest = encode(second, Bytes(32, 0xab), digests);
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_EQ(drain(*connection_), expected);
  }
}

TEST_F(ConnectionTest, ABadPayloadDigestIsReportedAndABadHeaderDigestEndsTheConnection) {
  greet(Store::kNull, kBoth);
  Bytes stream = encode(request(Op::kWrite, 0, 64, 1), Bytes(64, 1), kBoth);
  stream.back() ^= 1;
  ASSERT_TRUE(feed(stream));
  EXPECT_EQ(header_at(drain(*connection_), 0).status(), Status::kDigestError);
  stream = encode(request(Op::kRead, 0, 64, 2), {}, kBoth);
  stream[bare::kHeaderSize] ^= 1;
  EXPECT_FALSE(feed(stream));
}

TEST_F(ConnectionTest, NothingIsTouchedOutsideOfTheStore) {
  for (const Store store : {Store::kMemory, Store::kFile}) {
    connection_ = std::make_unique<Connection>(*stores_);
    greet(store, kNone);
    for (const uint64_t offset : {kFileSize - 256, kFileSize, ~size_t{0} - 100}) {
      ASSERT_TRUE(feed(encode(request(Op::kWrite, offset, 512, 1), Bytes(512, 1), kNone)));
      EXPECT_EQ(header_at(drain(*connection_), 0).status(), Status::kRefused);
      ASSERT_TRUE(feed(encode(request(Op::kRead, offset, 512, 1), {}, kNone)));
      EXPECT_EQ(header_at(drain(*connection_), 0).status(), Status::kRefused);
    }
  }
}

TEST_F(ConnectionTest, AStoreThatIsAbsentIsRefused) {
  const Stores none(0, "");
  for (const Store store : {Store::kMemory, Store::kFile}) {
    Connection connection(none);
    const Bytes stream = hello(store, kNone);
    ASSERT_TRUE(connection.input(stream.data(), static_cast<uint32_t>(stream.size())));
    EXPECT_EQ(header_at(drain(connection), 0).status(), Status::kRefused);
  }
}

TEST_F(ConnectionTest, NonsenseEndsTheConnection) {
  EXPECT_FALSE(feed(encode(request(Op::kRead, 0, 512, 1), {}, kNone))) << "before hello";
  connection_ = std::make_unique<Connection>(*stores_);
  greet(Store::kNull, kNone);
  EXPECT_FALSE(feed(encode(request(Op::kRead, 0, bare::kMaxPayload + 1, 1), {}, kNone)));
  connection_ = std::make_unique<Connection>(*stores_);
  greet(Store::kNull, kNone);
  EXPECT_FALSE(feed(Bytes(bare::kHeaderSize, 0xff)));
}

TEST_F(ConnectionTest, MoreInFlightThanABatchHoldsEndsTheConnection) {
  greet(Store::kNull, kNone);
  const Bytes read = encode(request(Op::kRead, 0, 512, 1), {}, kNone);
  for (uint32_t i = 0; i < Batch::kMaxAnswers; ++i) ASSERT_TRUE(feed(read));
  EXPECT_FALSE(feed(read));
}

TEST(Batch, AShortSendGoesOnWhereItStopped) {
  Batch batch;
  Header header;
  header.set_payload(100);
  const Bytes payload(100, 0x77);
  batch.add(header, payload.data(), kNone);
  batch.add(header, payload.data(), kNone);
  EXPECT_FALSE(batch.advance(bare::kHeaderSize + 30));
  size_t left = 0;
  const msghdr* message = batch.message();
  for (size_t i = 0; i < message->msg_iovlen; ++i) left += message->msg_iov[i].iov_len;
  EXPECT_EQ(left, 2 * (bare::kHeaderSize + 100) - bare::kHeaderSize - 30);
  EXPECT_TRUE(batch.advance(static_cast<uint32_t>(left)));
}

}  // namespace
}  // namespace sluice::bench
