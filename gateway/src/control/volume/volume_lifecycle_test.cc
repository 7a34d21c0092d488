#include "control/volume/volume_lifecycle.h"

#include <random>
#include <set>
#include <utility>

#include "control/volume/volume_fixture.h"

namespace sluice::control {
namespace {

using State = VolumeLifecycle::State;

class VolumeLifecycleTest : public VolumeTest {
 protected:
  void step() { volume_->step(now_); }
  State state() const { return volume_->state(); }
  void SetUpAgain() {
    volume_.reset();
    unit_ = {};
    disk_ = {};
    disk_.remote = true;
    load_done_ = nullptr;
    volume_ = std::make_shared<Volume>(kVolumeUid, kSelf, std::make_unique<FakeUnit>(unit_),
                                       static_cast<VolumeServices&>(*this), [] {});
  }
};

std::set<State> followers(State from) {
  std::set<State> all;
  for (auto to = State::kNew; to <= State::kRemoved;
       to = static_cast<State>(static_cast<uint8_t>(to) + 1)) {
    if (to != from && VolumeLifecycle::may_follow(from, to)) all.insert(to);
  }
  return all;
}

TEST_F(VolumeLifecycleTest, AVolumeIsAcquiredOwnedAndReleased) {
  EXPECT_EQ(state(), State::kNew);
  step();
  EXPECT_EQ(state(), State::kNew);
  give(order(wire::VOLUME_ROLE_FORWARDER, 5, 10, kOther));
  EXPECT_EQ(state(), State::kFollowing);
  disk_.opening = true;
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 11, kOther));
  EXPECT_EQ(state(), State::kLocking);
  EXPECT_EQ(volume_->asked(12).yield, Yield::kNotHeld);
  disk_.opening = false;
  step();
  EXPECT_EQ(state(), State::kLocked);
  disk_.claiming = true;
  give(order(wire::VOLUME_ROLE_OWNER, 6, 12));
  EXPECT_EQ(state(), State::kLoading);
  loaded(Loaded::What::kState);
  EXPECT_EQ(state(), State::kClaiming);
  disk_.claiming = false;
  step();
  EXPECT_EQ(state(), State::kServing);
  give(order(wire::VOLUME_ROLE_RELEASING, 6, 13));
  EXPECT_EQ(state(), State::kReleasing);
  disk_.closing = true;
  release_done();
  EXPECT_EQ(state(), State::kClosing);
  EXPECT_EQ(volume_->asked(14).yield, Yield::kNotHeld);
  disk_.closing = false;
  step();
  EXPECT_EQ(state(), State::kEpochOver);
  volume_->remove([] {});
  step();
  EXPECT_EQ(state(), State::kRemoved);
}

TEST_F(VolumeLifecycleTest, AServedVolumeIsFencedAndFollowsTheNewOwner) {
  own(5, 10);
  give(order(wire::VOLUME_ROLE_FORWARDER, 6, 11, kOther));
  EXPECT_EQ(state(), State::kFencing);
  unit_.backend.reset();
  unit_.fenced();
  step();
  EXPECT_EQ(state(), State::kFollowing);
}

TEST_F(VolumeLifecycleTest, AYieldedLockIsTakenAgainByANewerOrder) {
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(volume_->asked(11).yield, Yield::kYielding);
  step();
  EXPECT_EQ(state(), State::kYielded);
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 12, 0));
  EXPECT_EQ(state(), State::kLocked);
}

TEST_F(VolumeLifecycleTest, ALockThatCannotBeTakenIsTriedAgain) {
  disk_.broken = true;
  give(order(wire::VOLUME_ROLE_ACQUIRING, 5, 10, 0));
  EXPECT_EQ(state(), State::kLockFailed);
  disk_.broken = false;
  step();
  EXPECT_EQ(state(), State::kLocked);
}

TEST_F(VolumeLifecycleTest, AFailedLoadAndANewerEpochLeadBackToTheLock) {
  give(order(wire::VOLUME_ROLE_OWNER, 5, 10));
  loaded(Loaded::What::kFailed);
  EXPECT_EQ(state(), State::kLocked);
  disk_.claiming = true;
  step();
  loaded(Loaded::What::kState);
  EXPECT_EQ(state(), State::kClaiming);
  give(order(wire::VOLUME_ROLE_ACQUIRING, 6, 11));
  EXPECT_EQ(state(), State::kLocked);
}

// Orders, requests and answers in any sequence; step() asserts what must hold in each state.
TEST_F(VolumeLifecycleTest, AnySequenceOfEventsKeepsTheInvariantsAndReachesEveryState) {
  constexpr wire::VolumeRole kRoles[] = {wire::VOLUME_ROLE_ACQUIRING, wire::VOLUME_ROLE_OWNER,
                                         wire::VOLUME_ROLE_RELEASING, wire::VOLUME_ROLE_FORWARDER};
  std::set<State> reached;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto one_of = [&random](unsigned n) { return random() % n; };
    SetUpAgain();
    uint64_t epoch = 1, number = 1;
    for (int i = 0; i < 60 && state() != State::kRemoved; ++i) {
      switch (one_of(9)) {
        case 0:
        case 1:
        case 2:
          epoch += one_of(3) == 0 ? 1 : 0;
          number += one_of(4) == 0 ? 0 : 1;
          EXPECT_TRUE(volume_->order(order(kRoles[one_of(4)], epoch, number, 2 + one_of(2))).ok());
          break;
        case 3:
          volume_->asked(number + one_of(3) - 1);
          break;
        case 4:
          disk_.opening = one_of(2) == 0;
          disk_.claiming = one_of(2) == 0;
          disk_.closing = one_of(2) == 0;
          break;
        case 5:
          disk_.broken = one_of(3) == 0;
          disk_.lost = one_of(5) == 0 ? "blocklisted" : "";
          break;
        case 6:
          if (load_done_) {
            std::exchange(load_done_, nullptr)({static_cast<Loaded::What>(one_of(3)), {}, 1, ""});
          }
          break;
        case 7:
          if (!unit_.released && !unit_.fenced) break;
          unit_.backend.reset();
          if (unit_.released) std::exchange(unit_.released, nullptr)(one_of(4) != 0);
          if (unit_.fenced) std::exchange(unit_.fenced, nullptr)();
          break;
        default:
          if (one_of(20) == 0) volume_->remove([] {});
      }
      now_ += one_of(20) * kSecond;
      step();
      reached.insert(state());
      EXPECT_EQ(state() == State::kServing, unit_.backend && !unit_.released && !unit_.fenced);
    }
  }
  for (auto each = State::kNew; each <= State::kRemoved;
       each = static_cast<State>(static_cast<uint8_t>(each) + 1)) {
    EXPECT_TRUE(reached.contains(each)) << VolumeLifecycle::name_of(each);
  }
}

TEST(VolumeLifecycle, OnlyAClaimLeadsToServingAndNothingFollowsTheRemoval) {
  for (auto from = State::kNew; from <= State::kRemoved;
       from = static_cast<State>(static_cast<uint8_t>(from) + 1)) {
    EXPECT_EQ(followers(from).contains(State::kServing), from == State::kClaiming)
        << VolumeLifecycle::name_of(from);
  }
  EXPECT_EQ(followers(State::kServing), (std::set{State::kReleasing, State::kFencing}));
  EXPECT_EQ(followers(State::kReleasing), (std::set{State::kClosing}));
  EXPECT_EQ(followers(State::kFencing), (std::set{State::kClosing}));
  EXPECT_TRUE(followers(State::kRemoved).empty());
  EXPECT_FALSE(followers(State::kLocking).contains(State::kLoading));
}

#ifndef NDEBUG
TEST(VolumeLifecycleDeathTest, AVolumeIsNotServedBeforeItsRecordIsClaimed) {
  VolumeLifecycle lifecycle("v");
  lifecycle.enter(State::kLocking);
  lifecycle.enter(State::kLocked);
  EXPECT_DEATH(lifecycle.enter(State::kServing), "may_follow");
}
#endif

}  // namespace
}  // namespace sluice::control
