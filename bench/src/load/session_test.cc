#include "load/session.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load/iscsi_dialect.h"

namespace sluice::bench {
namespace {

using pdu::Bhs;
using pdu::Opcode;

// A session at one end of a pair of sockets, its target the test at the other.
class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    target_ = ends[1];
    const IscsiState state{.parameters = {}, .cmd_sn = 1, .exp_stat_sn = 5, .max_cmd_sn = 1000};
    auto dialect = std::make_unique<IscsiDialect>(
        state, nullptr, std::vector<uint64_t>{uint64_t{3} << 48}, 512, workload_.depth, true);
    session_ =
        std::make_unique<Session>(ends[0], std::move(dialect), workload_, 0, payload_.data());
  }
  void TearDown() override {
    session_.reset();
    close(target_);
  }

  Bhs command() {
    Bhs h;
    EXPECT_EQ(recv(target_, h.data(), pdu::kBhsSize, MSG_DONTWAIT), ssize_t{pdu::kBhsSize})
        << "no command came";
    EXPECT_EQ(h.opcode(), Opcode::kScsiCommand);
    return h;
  }
  bool silent() {
    uint8_t byte;
    return recv(target_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  }
  void answer(const Bhs& command, uint8_t status, std::vector<uint8_t> sense) {
    Bhs h;
    h.set_opcode(Opcode::kScsiResponse);
    h.set_flags(pdu::kFlagFinal);
    h.put8(3, status);
    h.set_itt(command.itt());
    h.put32(32, 1000);
    if (!sense.empty()) {
      sense.insert(sense.begin(), {0, static_cast<uint8_t>(sense.size())});
      h.set_data_length(static_cast<uint32_t>(sense.size()));
      sense.resize(pdu::padded(static_cast<uint32_t>(sense.size())));
    }
    ASSERT_EQ(send(target_, h.data(), pdu::kBhsSize, 0), ssize_t{pdu::kBhsSize});
    if (!sense.empty()) {
      ASSERT_EQ(send(target_, sense.data(), sense.size(), 0), static_cast<ssize_t>(sense.size()));
    }
    EXPECT_TRUE(session_->pump());
  }
  static std::vector<uint8_t> fixed(uint8_t key) {
    std::vector<uint8_t> sense(18);
    sense[0] = 0x70;
    sense[2] = key;
    sense[7] = 10;
    return sense;
  }

  Workload workload_{.size = 4096, .depth = 1, .write_percent = 0, .span = 1 << 20};
  std::vector<uint8_t> payload_ = std::vector<uint8_t>(4096);
  std::unique_ptr<Session> session_;
  int target_ = -1;
};

TEST_F(SessionTest, ACommandThatMeetsAUnitAttentionIsSentAgainAndIsNoError) {
  session_->start(Phase::kLoad);
  Bhs first = command();
  for (const std::vector<uint8_t>& sense :
       {fixed(6), std::vector<uint8_t>{0x72, 6, 0x2a, 6, 0, 0, 0, 0}}) {
    answer(first, 2, sense);
    const Bhs again = command();
    EXPECT_EQ(std::vector<uint8_t>(again.data() + 32, again.data() + 48),
              std::vector<uint8_t>(first.data() + 32, first.data() + 48))
        << "another CDB";
    EXPECT_EQ(again.cmd_sn(), first.cmd_sn() + 1);
    first = again;
  }
  EXPECT_EQ(session_->tally().attentions, 2u);
  EXPECT_EQ(session_->tally().errors, 0u);
  EXPECT_EQ(session_->tally().reads, 0u) << "it has not been executed";
}

TEST_F(SessionTest, OtherSenseIsAnError) {
  session_->start(Phase::kLoad);
  answer(command(), 2, fixed(3));
  EXPECT_EQ(session_->tally().errors, 1u);
  answer(command(), 2, {});
  EXPECT_EQ(session_->tally().errors, 2u) << "no sense at all";
  answer(command(), 8, fixed(6));
  EXPECT_EQ(session_->tally().errors, 3u) << "BUSY";
  EXPECT_EQ(session_->tally().attentions, 0u);
}

TEST_F(SessionTest, ATargetThatAnswersNothingButUnitAttentionsFailsInTheEnd) {
  session_->start(Phase::kLoad);
  for (int i = 0; i < 256; ++i) answer(command(), 2, fixed(6));
  EXPECT_EQ(session_->tally().errors, 0u);
  answer(command(), 2, fixed(6));
  EXPECT_EQ(session_->tally().errors, 1u);
}

TEST_F(SessionTest, AfterTheEndACommandIsStillSentAgainAndThenNoMore) {
  session_->start(Phase::kLoad);
  const Bhs last = command();
  session_->stop();
  EXPECT_FALSE(session_->idle());
  answer(last, 2, fixed(6));
  EXPECT_FALSE(session_->idle()) << "what was begun ends with an answer";
  answer(command(), 2, fixed(3));
  EXPECT_TRUE(session_->idle());
  EXPECT_TRUE(silent());
}

}  // namespace
}  // namespace sluice::bench
