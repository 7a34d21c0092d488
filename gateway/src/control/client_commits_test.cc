#include "control/client_commits.h"

#include <gtest/gtest.h>

#include "base/limits.h"

namespace sluice::control {
namespace {

using State = ClientCommits::State;

class ClientCommitsTest : public testing::Test {
 protected:
  uint64_t add(const std::string& client) {
    return commits_.add("pool", client, [this](State state, const std::string& why) {
      received_.push_back(state);
      why_ = why;
    });
  }
  void answer(wire::CommitResult result, const std::string& why = {}) {
    ASSERT_FALSE(asked_.empty());
    wire::RadosClientOutcome outcome;
    outcome.set_request_id(asked_.back().request_id());
    outcome.set_result(result);
    outcome.set_reason(why);
    commits_.received(outcome);
  }

  bool stream_ = true;
  Nanos now_ = kSecond;
  std::vector<wire::RadosClientCommit> asked_;
  std::vector<State> received_;
  std::string why_;
  ClientCommits commits_{[this](const wire::ConnectRequest& m) {
                           if (stream_) asked_.push_back(m.rados_client_commit());
                           return stream_;
                         },
                         [this] { return now_; }};
};

TEST_F(ClientCommitsTest, AClientIsRecordedOnlyByTheAnswerToItsOwnRequest) {
  add("a");
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].pool_uid(), "pool");
  EXPECT_EQ(asked_[0].client(), "a");
  wire::RadosClientOutcome other;
  other.set_request_id(asked_[0].request_id() + 1);
  other.set_result(wire::COMMIT_RESULT_COMMITTED);
  commits_.received(other);
  EXPECT_TRUE(received_.empty());
  answer(wire::COMMIT_RESULT_COMMITTED);
  EXPECT_EQ(received_, std::vector{State::kRecorded});
}

TEST_F(ClientCommitsTest, WithoutAStreamTheRequestIsSentOverTheNextStream) {
  stream_ = false;
  add("a");
  stream_ = true;
  commits_.connected();
  ASSERT_EQ(asked_.size(), 1u);
  answer(wire::COMMIT_RESULT_COMMITTED);
  EXPECT_EQ(received_, std::vector{State::kRecorded});
}

TEST_F(ClientCommitsTest, AnAnswerToARequestOfAnEndedStreamIsIgnored) {
  add("a");
  const wire::RadosClientCommit first = asked_.back();
  commits_.lost();
  commits_.connected();
  ASSERT_EQ(asked_.size(), 2u);
  wire::RadosClientOutcome late;
  late.set_request_id(first.request_id());
  late.set_result(wire::COMMIT_RESULT_COMMITTED);
  commits_.received(late);
  EXPECT_TRUE(received_.empty());
}

TEST_F(ClientCommitsTest, ARecordedClientStaysRecordedAndIsRequestedAgainOverEachStream) {
  add("a");
  answer(wire::COMMIT_RESULT_COMMITTED);
  commits_.lost();
  now_ += 2 * limits::kClientAgain;
  commits_.tick();
  EXPECT_EQ(asked_.size(), 1u) << "nothing new to ask over the same stream";
  commits_.connected();
  ASSERT_EQ(asked_.size(), 2u);
  answer(wire::COMMIT_RESULT_NOT_COMMITTED, "the store is away");
  EXPECT_EQ(received_, (std::vector{State::kRecorded, State::kRecorded}));
}

TEST_F(ClientCommitsTest, ARefusalIsReportedAndTheRequestIsRepeatedAfterADelay) {
  add("a");
  answer(wire::COMMIT_RESULT_NOT_COMMITTED, "too many clients");
  EXPECT_EQ(received_, std::vector{State::kAsked});
  EXPECT_EQ(why_, "too many clients");
  commits_.tick();
  EXPECT_EQ(asked_.size(), 1u);
  now_ += limits::kClientAgain;
  commits_.tick();
  EXPECT_EQ(asked_.size(), 2u);
}

TEST_F(ClientCommitsTest, AFencedClientIsNotRequestedAgain) {
  const uint64_t a = add("a");
  answer(wire::COMMIT_RESULT_COMMITTED);
  commits_.lost();
  commits_.connected();
  answer(wire::COMMIT_RESULT_FENCED);
  EXPECT_EQ(received_, (std::vector{State::kRecorded, State::kFenced}));
  commits_.lost();
  commits_.connected();
  EXPECT_EQ(asked_.size(), 2u);
  commits_.remove(a);
  add("b");
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_EQ(asked_.back().client(), "b");
}

// A pool was changed, but its client stayed the same. The old object lives as long as a volume uses
// it.
TEST_F(ClientCommitsTest, RemovingOneOfTwoEntriesOfTheSameClientLeavesTheOtherActive) {
  const uint64_t former = add("a");
  answer(wire::COMMIT_RESULT_COMMITTED);
  const uint64_t later = add("a");
  EXPECT_NE(former, later);
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_.back().client(), "a");
  commits_.remove(former);
  received_.clear();
  answer(wire::COMMIT_RESULT_COMMITTED);
  EXPECT_EQ(received_, std::vector{State::kRecorded}) << "the volumes of the later one would wait";
  commits_.connected();
  ASSERT_EQ(asked_.size(), 3u);
  commits_.remove(later);
  commits_.connected();
  EXPECT_EQ(asked_.size(), 3u);
}

}  // namespace
}  // namespace sluice::control
