// What goes to the owner through a link, what comes back, and what waits for both (DESIGN R1, R6,
// R9).
#include <gtest/gtest.h>

#include "base/limits.h"
#include "nexus/cluster_fixture.h"
#include "nexus/pipeline.h"

namespace sluice::lun {
namespace {

class ForwardingTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    follow_to(2, 7);
    nexus = open("a");
  }
  FakeLink& link() { return links.last(); }
  Command& forwarded(size_t i) { return *link().started.at(i).first; }

  std::shared_ptr<Nexus> nexus;
};

TEST_F(ForwardingTest, AForwarderAnswersIdentityAndInventoryCommandsAndForwardsTheRest) {
  for (const Bytes& cdb :
       {inquiry(), vpd(0x00), vpd(0x80), vpd(0x83), vpd(0x86), report_luns(), report_groups()}) {
    EXPECT_TRUE(start(*nexus, cdb).done());
  }
  EXPECT_EQ(start(*nexus, set_groups(), Bytes(8)).sense(), 0x052400u);
  EXPECT_TRUE(links.links.empty()) << "opened by the first command that needs it";
  Bytes unknown(16);
  unknown[0] = 0xc1;
  const std::vector<Bytes> theirs = {test_unit_ready(),  request_sense(), vpd(0xb0),
                                     vpd(0xb1),          vpd(0xb2),       read16(0, 8),
                                     read16(kBlocks, 8), unknown};
  for (const Bytes& cdb : theirs) EXPECT_EQ(start(*nexus, cdb).completions, 0);
  ASSERT_EQ(links.links.size(), 1u);
  EXPECT_EQ(links.links[0].first, 2);
  ASSERT_EQ(link().started.size(), theirs.size());
  for (const auto& [command, epoch] : link().started) EXPECT_EQ(epoch, 7u);
}

TEST_F(ForwardingTest, AForwarderCollectsTheWholeDataOutRegardlessOfTheCdb) {
  Task& write = make(write16(0, 1), Bytes(4096, 3));
  ASSERT_TRUE(begin(*nexus, write));
  EXPECT_EQ(write.command.data_out_wanted, 4096u);
  send_data(*nexus, write, 1000);
  ASSERT_EQ(link().started.size(), 1u);
  EXPECT_EQ(forwarded(0).data_out_size, 4096u);
  EXPECT_EQ(forwarded(0).cdb[0], 0x8a);
}

TEST_F(ForwardingTest, AForwarderCollectsAtMostTheMaximumTransferLength) {
  Task& write = make(write16(0, 1));
  write.command.expected_data_out = 0xffff'fe00;
  ASSERT_TRUE(begin(*nexus, write));
  EXPECT_EQ(write.command.data_out_wanted, limits::kMaxTransferBytes);
  finish_good(write.command);
}

TEST_F(ForwardingTest, UnitAttentionsOfTheForwarderPrecedeForwarding) {
  auto fresh = open_fresh("b");
  EXPECT_EQ(start(*fresh, read16(0, 8)).sense(), 0x062900u);
  unit->attached().raise({0x3f, 0x0e}, nullptr);
  const Bytes sense = start(*fresh, request_sense()).answer();
  EXPECT_EQ(sense[12], 0x3f);
  EXPECT_EQ(start(*fresh, read16(0, 8)).completions, 0);
  ASSERT_EQ(links.links.size(), 1u);
  EXPECT_EQ(link().started.size(), 1u);
}

TEST_F(ForwardingTest, AForwarderReturnsTheDataStatusAndSenseOfTheOwner) {
  Task& read = start(*nexus, read16(0, 8));
  Task& bad = start(*nexus, read16(0, 8));
  Task& busy = start(*nexus, read16(0, 8));
  Bytes data(4096, 9);
  finish_forwarded(forwarded(0), scsi::Status::kGood, {}, {{BufferRef(), data.data(), 4096}}, 100);
  EXPECT_EQ(read.answer(), data);
  EXPECT_EQ(read.command.data_in_size, 4196u);
  std::array<uint8_t, 18> sense{0x70, 0, 0x03, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 0};
  finish_forwarded(forwarded(1), scsi::Status::kCheckCondition, sense, {});
  EXPECT_EQ(bad.sense(), 0x031100u);
  finish_forwarded(forwarded(2), scsi::Status::kBusy, {}, {});
  EXPECT_EQ(busy.command.status, scsi::Status::kBusy);
  EXPECT_TRUE(read.done() && bad.done() && busy.done());
}

TEST_F(ForwardingTest, AnAbortedCommandEndsWhenItsLinkCompletesIt) {
  Task& read = start(*nexus, read16(0, 8));
  nexus->abort(read.command);
  nexus->abort(read.command);
  EXPECT_EQ(read.completions, 0);
  ASSERT_EQ(link().aborted.size(), 1u);
  finish_forwarded(*link().aborted[0], scsi::Status::kGood, {}, {});
  EXPECT_TRUE(read.done());
  EXPECT_TRUE(read.command.aborted());
  link().aborted.clear();
}

TEST_F(ForwardingTest, ACommandWithoutALinkToTheOwnerReportsATransition) {
  links.known = false;
  EXPECT_EQ(start(*nexus, read16(0, 8)).sense(), kInTransition);
  forwarding = nullptr;
  EXPECT_EQ(start(*open("b"), read16(0, 8)).sense(), kInTransition);
}

TEST_F(ForwardingTest, AnEndedLinkIsReplacedAndAnOpenLinkIsReused) {
  start(*nexus, read16(0, 8));
  start(*nexus, read16(0, 8));
  ASSERT_EQ(links.links.size(), 1u);
  link().over = true;
  start(*nexus, read16(0, 8));
  ASSERT_EQ(links.links.size(), 2u);
  EXPECT_EQ(links.links[0].second->started.size(), 2u);
  EXPECT_EQ(links.links[0].second->closed.size(), 1u);
  EXPECT_EQ(link().started.size(), 1u);
  for (const auto& l : links.links) {
    for (const auto& s : l.second->started) finish_good(*s.first);
  }
}

TEST_F(ForwardingTest, EveryOwnerHasItsOwnLinkAndTheNexusClosesThemAtItsEnd) {
  start(*nexus, read16(0, 8));
  follow_to(3, 8);
  forget_attentions(*nexus);
  start(*nexus, read16(0, 8));
  follow_to(2, 9);
  forget_attentions(*nexus);
  start(*nexus, read16(0, 8));
  ASSERT_EQ(links.links.size(), 2u);
  FakeLink& two = *links.links[0].second;
  FakeLink& three = *links.links[1].second;
  EXPECT_EQ(two.started.size(), 2u);
  bool closed = false;
  nexus->close(true, [&] { closed = true; });
  reactors.run();
  EXPECT_TRUE(two.lost && three.lost);
  EXPECT_EQ(two.aborted.size(), 2u);
  two.closed.at(0)();
  three.closed.at(0)();
  two.closed.clear();
  three.closed.clear();
  reactors.run();
  EXPECT_FALSE(closed) << "the commands are still at the owners";
  for (Command* c : std::exchange(two.aborted, {})) finish_good(*c);
  for (Command* c : std::exchange(three.aborted, {})) finish_good(*c);
  reactors.run();
  EXPECT_TRUE(closed);
}

TEST_F(ForwardingTest, ALogicalUnitResetWaitsForTheOwnerAndForItsOwnCommands) {
  Task& read = start(*nexus, read16(0, 8));
  bool done = false;
  ASSERT_TRUE(nexus->logical_unit_reset(0, [&](bool at_owner) { done = at_owner; }));
  ASSERT_EQ(link().functions.size(), 1u);
  EXPECT_EQ(link().functions[0].function, LinkFunction::kLogicalUnitReset);
  reactors.run();
  EXPECT_FALSE(done);
  link().functions[0].done(true);
  reactors.run();
  EXPECT_FALSE(done) << "a command is still at the owner";
  finish_good(*link().aborted.at(0));
  link().aborted.clear();
  reactors.run();
  EXPECT_TRUE(done && read.done());
}

TEST_F(ForwardingTest, AResetOpensALinkToTheOwnerButAbortTaskSetDoesNot) {
  bool aborted = false;
  ASSERT_TRUE(nexus->abort_task_set(0, [&] { aborted = true; }));
  reactors.run();
  EXPECT_TRUE(aborted);
  EXPECT_TRUE(links.links.empty()) << "nothing of this nexus can be at the owner";
  bool reset = false;
  nexus->target_reset([&](bool at_owner) { reset = at_owner; });
  reactors.run();
  ASSERT_EQ(links.links.size(), 1u);
  EXPECT_FALSE(reset);
  link().functions.at(0).done(false);  // fenced
  reactors.run();
  EXPECT_FALSE(reset) << "no owner has done it";
  follow_to(3, 8);
  ASSERT_EQ(links.links.size(), 2u);
  link().functions.at(0).done(true);
  reactors.run();
  EXPECT_TRUE(reset);
}

TEST_F(ForwardingTest, TaskSetFunctionsAreForwardedToTheOwner) {
  Task& read = start(*nexus, read16(0, 8));
  finish_good(forwarded(0));
  EXPECT_TRUE(read.done());
  bool done = false;
  ASSERT_TRUE(nexus->clear_task_set(0, [&] { done = true; }));
  reactors.run();
  EXPECT_FALSE(done);
  ASSERT_EQ(link().functions.size(), 1u);
  EXPECT_EQ(link().functions[0].function, LinkFunction::kAbortTaskSet);
  link().functions[0].done(true);
  reactors.run();
  EXPECT_TRUE(done);
}

TEST_F(ForwardingTest, ACommandAfterAnOrderedCommandIsForwardedWhenTheOrderedCommandEnds) {
  Task& ordered = make(write16(0, 8), Bytes(4096, 1));
  ordered.command.attribute = TaskAttribute::kOrdered;
  ASSERT_TRUE(begin(*nexus, ordered));
  Task& simple = start(*nexus, read16(0, 8));
  EXPECT_TRUE(links.links.empty());
  send_data(*nexus, ordered);
  EXPECT_EQ(link().started.size(), 1u);
  finish_good(forwarded(0));
  ASSERT_EQ(link().started.size(), 2u);
  EXPECT_EQ(&forwarded(1), &simple.command);
}

TEST_F(ForwardingTest, AForwarderRefusesWritesOfAReadOnlyHost) {
  read_only = true;
  auto reader = open("b");
  EXPECT_EQ(start(*reader, write16(0, 8), Bytes(4096)).sense(), 0x072700u);
  Bytes unknown(16);
  unknown[0] = 0xc1;
  EXPECT_EQ(start(*reader, unknown).sense(), 0x052000u);
  EXPECT_EQ(start(*reader, read16(0, 8)).completions, 0);
}

TEST_F(ForwardingTest, AForwarderRefusesWritesToALunThatIsReadOnlyInItsTarget) {
  target->set_luns({{0, unit, true}}, reactors);
  auto reader = open("b");
  EXPECT_EQ(start(*reader, write16(0, 8), Bytes(4096)).sense(), 0x072700u);
  EXPECT_EQ(start(*reader, read16(0, 8)).completions, 0);
  ASSERT_EQ(links.links.size(), 1u);
  EXPECT_EQ(link().started.size(), 1u) << "the read alone is forwarded";
}

TEST_F(ForwardingTest, AForwarderRefusesReservationsOfAReadOnlyHostExceptRegisterAndReserveIn) {
  read_only = true;
  auto reader = open("b");
  for (const uint8_t action : {1, 3, 4, 5, 7}) {
    Bytes out{0x5f, action, 1, 0, 0, 0, 0, 0, 24, 0};
    EXPECT_EQ(start(*reader, out, Bytes(24)).sense(), 0x072700u) << int{action};
  }
  EXPECT_EQ(start(*reader, Bytes{0x16, 0, 0, 0, 0, 0}).sense(), 0x072700u);
  EXPECT_TRUE(links.links.empty()) << "nothing of it is forwarded";
  // The parameter list says whether REGISTER registers or unregisters, so the owner decides.
  start(*reader, Bytes{0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0}, Bytes(24));
  start(*reader, Bytes{0x5e, 0, 0, 0, 0, 0, 0, 0, 24, 0});
  ASSERT_EQ(links.links.size(), 1u);
  EXPECT_EQ(link().started.size(), 2u);
}

TEST_F(ForwardingTest, ACommandThatTheOwnerReturnsUnexecutedWaitsForTheNextOwner) {
  Task& write = start(*nexus, write16(0, 8), Bytes(4096, 5));
  return_forwarded(forwarded(0));
  EXPECT_EQ(write.completions, 0);
  follow_to(3, 8);
  ASSERT_EQ(links.links.size(), 2u);
  EXPECT_EQ(link().started.at(0).second, 8u);
  return_forwarded(forwarded(0));
  serve_here(9);
  EXPECT_EQ(write.command.status, scsi::Status::kGood);
  EXPECT_TRUE(backend->all(0, 4096, 5));
}

TEST_F(ForwardingTest, ACommandThatOwnersReturnRepeatedlyReportsATransition) {
  Task& read = start(*nexus, read16(0, 8));
  return_forwarded(forwarded(0));
  now += limits::kHoldCommands / 2;
  nexus->tick();
  ASSERT_EQ(link().started.size(), 2u) << "tried again";
  return_forwarded(forwarded(1));
  now += limits::kHoldCommands / 2;
  nexus->tick();
  ASSERT_EQ(link().started.size(), 3u);
  EXPECT_EQ(read.completions, 0);
  return_forwarded(forwarded(2));
  EXPECT_EQ(read.sense(), kInTransition);
}

// --- the role changes while data is on its way

TEST_F(ForwardingTest, DataSolicitedByAForwarderIsWrittenAfterItBecomesTheOwner) {
  Task& write = make(write16(0, 1), Bytes(4096, 3));
  ASSERT_TRUE(begin(*nexus, write));
  serve_here(8);
  send_data(*nexus, write);
  EXPECT_EQ(write.command.status, scsi::Status::kGood);
  ASSERT_EQ(backend->submitted.size(), 1u);
  EXPECT_EQ(backend->submitted[0].length, 512u) << "the CDB says one block";
  EXPECT_EQ(write.command.data_out_wanted, 512u) << "the residual is the CDB's";
  EXPECT_TRUE(backend->all(512, 4096, 0));
}

TEST_F(ForwardingTest, ACdbIsCheckedAfterAForwarderBecomesTheOwner) {
  Task& write = make(write16(kBlocks, 8), Bytes(4096, 3));
  ASSERT_TRUE(begin(*nexus, write));
  serve_here(8);
  send_data(*nexus, write);
  EXPECT_EQ(write.sense(), 0x052100u);
}

TEST_F(ForwardingTest, DataSolicitedByAnOwnerIsForwardedToItsSuccessor) {
  serve_here(8);
  forget_attentions(*nexus);
  Task& write = make(write16(0, 8), Bytes(4096, 3));
  ASSERT_TRUE(begin(*nexus, write));
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(*released, 1) << "a slow host doesn't delay the move";
  send_data(*nexus, write);
  EXPECT_EQ(write.completions, 0);
  follow_to(2, 9);
  ASSERT_EQ(links.links.size(), 1u);
  EXPECT_EQ(link().started.at(0).second, 9u);
  EXPECT_EQ(fate->late, 0u);
}

TEST_F(ForwardingTest, AForwardedCommandStaysAtItsLinkWhenThisGatewayBecomesTheOwner) {
  Task& write = start(*nexus, write16(0, 8), Bytes(4096, 3));
  serve_here(8);
  EXPECT_EQ(write.completions, 0);
  EXPECT_TRUE(backend->submitted.empty());
  const auto released = release_unit();
  reactors.run();
  EXPECT_EQ(*released, 1) << "it isn't ours to wait for";
  finish_good(forwarded(0));
  EXPECT_TRUE(write.done());
}

// --- at the owner: forwarded to us

TEST_F(ForwardingTest, AForwardedCommandOfAnotherEpochIsRefusedAndNotForwardedAgain) {
  const auto of_epoch = [&](uint64_t epoch, bool write = false) -> Task& {
    Task& task = write ? make(write16(0, 8), Bytes(4096, 1)) : make(read16(0, 8));
    task.command.epoch = epoch;
    if (begin(*nexus, task)) send_data(*nexus, task);
    return task;
  };
  EXPECT_EQ(of_epoch(7).command.outcome, Outcome::kNotOwner) << "a forwarder";
  EXPECT_TRUE(links.links.empty());
  serve_here(8);
  forget_attentions(*nexus);
  std::vector<uint64_t> told;
  unit->watch_epochs([&told](uint64_t epoch) { told.push_back(epoch); });
  EXPECT_EQ(of_epoch(7).command.outcome, Outcome::kNotOwner);
  EXPECT_EQ(of_epoch(9, true).command.outcome, Outcome::kNotOwner);
  EXPECT_EQ(told, std::vector<uint64_t>{9}) << "a gateway that sees a newer one is fenced (R1)";
  EXPECT_TRUE(backend->submitted.empty());
  EXPECT_NE(of_epoch(8).command.outcome, Outcome::kNotOwner);
  EXPECT_EQ(backend->submitted.size(), 1u);
  Task& write = make(write16(0, 8), Bytes(4096, 1));
  write.command.epoch = 8;
  ASSERT_TRUE(begin(*nexus, write));
  release_unit();
  reactors.run();
  send_data(*nexus, write);
  EXPECT_TRUE(write.done() && write.command.outcome == Outcome::kNotOwner);
  EXPECT_EQ(write.command.status, scsi::Status::kBusy);
  EXPECT_TRUE(links.links.empty());
}

TEST_F(ForwardingTest, AForwardedCommandIsRefusedIfItsEpochEndsBeforeItsDataArrives) {
  serve_here(8);
  forget_attentions(*nexus);
  Task& write = make(write16(0, 8), Bytes(4096, 1));
  write.command.epoch = 8;
  ASSERT_TRUE(begin(*nexus, write));
  release_unit();
  reactors.run();
  serve_here(9);
  send_data(*nexus, write);
  EXPECT_TRUE(write.done() && write.command.outcome == Outcome::kNotOwner);
  EXPECT_TRUE(backend->submitted.empty());
}

}  // namespace
}  // namespace sluice::lun
