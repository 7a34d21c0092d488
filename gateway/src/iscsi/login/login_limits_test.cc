// Logins of many PDUs: the C bit both ways, and where it ends (RFC 7143 §6.2).
#include <gtest/gtest.h>

#include "base/limits.h"
#include "iscsi/login/login_dialogue.h"

namespace sluice::iscsi {
namespace {

using Outcome = Login::Outcome;

TEST(LoginLimits, ARequestMayBeSplitAtAnyByte) {
  const std::string text = text_of(LoginDialogue::names(kOpenTarget, {"InitialR2T=No"}));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    LoginDialogue d;
    Reply first = d.send_text(kOperationalStays | kMoreText, text.substr(0, cut));
    ASSERT_EQ(first.outcome, Outcome::kContinue);
    ASSERT_EQ(first.flags(), kOperationalStays);
    ASSERT_TRUE(first.answer.text.empty()) << "a request with the C bit is answered by no text";
    Reply second = d.send_text(kOperationalToFull, text.substr(cut));
    ASSERT_EQ(second.outcome, Outcome::kSucceeded) << cut;
    ASSERT_EQ(second.keys()[1], "InitialR2T=No");
  }
}

// Enough unknown keys to make an answer longer than `bytes`.
Keys many_keys(size_t bytes) {
  Keys keys;
  for (size_t size = 0, i = 0; size <= bytes; ++i) {
    keys.push_back("X-" + std::to_string(1000 + i) + std::string(50, 'k') + "=1");
    size += keys.back().size() - 1 + sizeof "NotUnderstood";
  }
  return keys;
}

TEST(LoginLimits, ALongAnswerIsSentInPiecesOfTheDeclaredLength) {
  LoginDialogue d;
  Keys keys = LoginDialogue::names(kOpenTarget, {"MaxRecvDataSegmentLength=512"});
  const Keys extra = many_keys(2000);
  keys.insert(keys.end(), extra.begin(), extra.end());
  Reply part = d.send(kOperationalToFull, keys);
  std::string text;
  unsigned parts = 1;
  for (; part.flags() & kMoreText; ++parts) {
    ASSERT_EQ(part.outcome, Outcome::kContinue);
    ASSERT_EQ(part.flags(), kOperationalStays | kMoreText) << "no transit before the last part";
    ASSERT_EQ(part.answer.text.size(), 512u);
    ASSERT_EQ(part.answer.header.data_length(), 512u);
    text += part.answer.text;
    part = d.send(kOperationalToFull, {});
  }
  EXPECT_EQ(part.outcome, Outcome::kSucceeded);
  EXPECT_EQ(part.flags(), kOperationalToFull);
  text += part.answer.text;
  EXPECT_EQ(parts, (text.size() + 511) / 512);
  EXPECT_GE(parts, 4u);
  EXPECT_EQ(keys_of(text).size(), extra.size() + 2);
  EXPECT_EQ(keys_of(text).back(), "MaxRecvDataSegmentLength=262144");
}

TEST(LoginLimits, APieceOfAnAnswerHasAtMost8192BytesIfMoreIsDeclared) {
  LoginDialogue d;
  Keys keys = LoginDialogue::names(kOpenTarget, {"MaxRecvDataSegmentLength=16777215"});
  const Keys extra = many_keys(8192);
  ASSERT_LE(extra.size() + keys.size(), limits::kMaxKeysPerExchange);
  keys.insert(keys.end(), extra.begin(), extra.end());
  EXPECT_EQ(d.send(kOperationalToFull, keys).answer.text.size(), limits::kMaxLoginSegment);
}

TEST(LoginLimits, TextDuringAnUnfinishedAnswerIsRefused) {
  for (uint8_t flags : {kOperationalToFull, uint8_t{kOperationalStays | kMoreText}}) {
    LoginDialogue d;
    Keys keys = LoginDialogue::names(kOpenTarget, {"MaxRecvDataSegmentLength=512"});
    const Keys extra = many_keys(600);
    keys.insert(keys.end(), extra.begin(), extra.end());
    ASSERT_EQ(d.send(kOperationalStays, keys).outcome, Outcome::kContinue);
    Reply reply =
        flags == kOperationalToFull ? d.send(flags, {"InitialR2T=No"}) : d.send(flags, {});
    EXPECT_EQ(reply.status(), 0x0200);
  }
}

TEST(LoginLimits, ALoginHasAtMost64Pdus) {
  LoginDialogue d;
  d.send(kOperationalStays, LoginDialogue::names(kOpenTarget));
  for (unsigned i = 1; i < limits::kMaxLoginPdus; ++i) {
    ASSERT_EQ(d.send(kOperationalStays, {}).outcome, Outcome::kContinue);
  }
  EXPECT_EQ(d.send(kOperationalToFull, {}).status(), 0x0200);
}

TEST(LoginLimits, OneTextHasAtMost64KiB) {
  LoginDialogue d;
  const std::string piece(limits::kMaxLoginSegment, 'x');
  for (unsigned i = 0; i < limits::kMaxTextBytes / limits::kMaxLoginSegment; ++i) {
    ASSERT_EQ(d.send_text(kOperationalStays | kMoreText, piece).outcome, Outcome::kContinue);
  }
  EXPECT_EQ(d.send_text(kOperationalStays, "y").status(), 0x0200);
}

TEST(LoginLimits, OneTextHasAtMost128Keys) {
  Keys keys = LoginDialogue::names(kOpenTarget);
  while (keys.size() < limits::kMaxKeysPerExchange) {
    keys.push_back("X-" + std::to_string(keys.size()) + "=1");
  }
  LoginDialogue full;
  EXPECT_EQ(full.send(kOperationalStays, keys).outcome, Outcome::kContinue);
  keys.emplace_back("X-over=1");
  LoginDialogue over;
  EXPECT_EQ(over.send(kOperationalStays, keys).status(), 0x0200);
}

}  // namespace
}  // namespace sluice::iscsi
