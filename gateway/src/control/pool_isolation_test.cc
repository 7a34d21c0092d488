// A pool that hangs delays nothing of another pool: opening and taking over volumes, jobs, probes,
// records of reservations. All objects are those of a gateway, except for the pool that hangs.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/executor.h"
#include "base/limits.h"
#include "control/client_commits.h"
#include "control/fake_replica.h"
#include "control/hanging_pool.h"
#include "control/job_runner.h"
#include "control/one_reactor.h"
#include "control/pool_prober.h"
#include "control/test_objects.h"
#include "control/volume/reservations.h"
#include "control/volume/volumes.h"

namespace sluice::control {
namespace {

// More than limits::kControlThreads of each kind of task.
constexpr unsigned kHanging = 3 * limits::kControlThreads;

// The first 64 bits of the UUID differ, and with them the NAA designator.
std::string number_text(unsigned number) {
  const std::string digits = std::to_string(number);
  return std::string(8 - digits.size(), '0') + digits;
}
std::string uid_of(unsigned number) { return number_text(number) + "-1111-4222-8333-444455556666"; }

// The parts of a gateway between the stream and the pools. The control plane answers every request.
class ControlParts {
 public:
  ControlParts(uint16_t number, OneReactor& reactor, Hang& hang, const std::string& directory)
      : reactor_(reactor), number_(number), kind_(std::make_shared<HangingPools>(hang)) {
    volumes_->set_self(number);
    wire::DesiredPool hanging;
    hanging.set_uid("hanging");
    hanging.mutable_rbd();
    EXPECT_TRUE(volumes_->put_pool(hanging));
    wire::DesiredPool healthy;
    healthy.set_uid("healthy");
    healthy.mutable_local()->set_directory(directory);
    EXPECT_TRUE(volumes_->put_pool(healthy));
  }
  ~ControlParts() {
    store_->stop();
    executor_.stop();
  }

  void own(const std::string& pool, unsigned number, uint64_t epoch) {
    wire::DesiredVolume volume;
    volume.set_uid(uid_of(number));
    volume.set_role(wire::VOLUME_ROLE_OWNER);
    volume.set_epoch(epoch);
    volume.set_order(epoch);
    volume.set_owner(number_);
    volume.set_pool_uid(pool);
    volume.set_location("disk");
    volume.set_size_bytes(1 << 20);
    volume.set_block_size(512);
    volume.set_naa("3" + number_text(number) + "1111222");
    volume.set_serial_number(uid_of(number));
    const Result<void> put = volumes_->put(volume);
    EXPECT_TRUE(put) << put.error();
  }
  void create(const std::string& pool) {
    wire::Job job;
    job.set_id(pool);
    job.set_pool_uid(pool);
    job.mutable_create()->set_location("disk");
    job.mutable_create()->set_size_bytes(1 << 20);
    jobs_.submit(job);
  }
  void probe(const std::string& pool) { prober_.probe({pool}); }
  void commit(unsigned number) {
    store_->commit(uid_of(number), {}, {&reactor_, 0},
                   [events = events_](lun::CommitOutcome outcome, const std::string&) {
                     const bool committed = outcome == lun::CommitOutcome::kCommitted;
                     events->add(committed ? "committed" : "not committed");
                   });
  }
  // A volume of the hanging pool that was open before it hung.
  void serve_hanging(unsigned number, Hang& hang) {
    Record record;
    record.volume = uid_of(number);
    record.epoch = 1;
    store_->open(record, std::make_shared<HangingStorage>(hang), PoolTable::group_of("hanging"));
  }
  std::string next(const std::string& beginning) { return events_->take(beginning); }
  void destroy_volumes() {
    executor_.stop();
    volumes_.reset();
  }

 private:
  // The control plane's answer comes from another thread.
  bool answer(const wire::ConnectRequest& request) {
    executor_.post({"control plane", "answers"}, [this, request] {
      if (request.has_reservation_load()) {
        wire::ReservationState state;
        state.set_request_id(request.reservation_load().request_id());
        state.set_result(wire::COMMIT_RESULT_COMMITTED);
        store_->received(state);
      }
      if (request.has_reservation_commit()) {
        wire::ReservationOutcome outcome;
        outcome.set_request_id(request.reservation_commit().request_id());
        outcome.set_result(wire::COMMIT_RESULT_COMMITTED);
        store_->received(outcome);
      }
    });
    return true;
  }

  OneReactor& reactor_;
  const uint16_t number_;
  const std::shared_ptr<HangingPools> kind_;
  // Shared with commits, which the reactor may answer after the end of this object.
  const std::shared_ptr<Events> events_ = std::make_shared<Events>();
  ClientCommits commits_{[](const wire::ConnectRequest&) { return false; }};
  Executor executor_{{.threads = limits::kControlThreads}};
  const std::shared_ptr<StreamReservations> store_ =
      std::make_shared<StreamReservations>(StreamReservations::Setup{
          .request = [this](const wire::ConnectRequest& request) { return answer(request); },
          .fenced = [](const std::string&) {},
          .executor = executor_});
  std::unique_ptr<Volumes> volumes_ = std::make_unique<Volumes>(Volumes::Setup{
      .reactors = reactor_,
      .executor = executor_,
      .reservations = store_,
      .report =
          [this](const wire::VolumeObserved& seen) {
            events_->add("volume " + seen.uid() + ' ' +
                         wire::VolumeState_Name(seen.state()).substr(13) + ' ' +
                         std::to_string(seen.epoch()) + ' ' + seen.reason());
          },
      .services = {.commits = commits_, .incarnation = "gateway-" + std::to_string(number_)},
      .rbd = kind_,
      .nearly_full = nullptr});
  JobRunner jobs_{{.volumes = *volumes_,
                   .executor = executor_,
                   .reactors = reactor_,
                   .report = [this](const wire::JobResult& result) {
                     events_->add("job " + result.id() + ' ' + result.problem());
                   }}};
  PoolProber prober_{volumes_->pools(), executor_, [this](const wire::PoolObserved& seen) {
                       events_->add("pool " + seen.uid() + ' ' + seen.problem());
                     }};
};

class PoolIsolation : public testing::Test {
 protected:
  ~PoolIsolation() override { hang_.release(); }

  // Every thread that the hanging pool can get hangs, and more of its tasks wait.
  void hang() {
    gateway_.probe("hanging");
    gateway_.create("hanging");
    for (unsigned number = 100; number < 100 + kHanging; ++number) {
      gateway_.own("hanging", number, 1);
      gateway_.serve_hanging(500 + number, hang_);
      gateway_.commit(500 + number);
    }
    hang_.wait_for(limits::kControlThreads);
  }

  TestDirectory directory_;
  Hang hang_;
  OneReactor reactor_;
  ControlParts other_{4, reactor_, hang_, directory_.path()};
  ControlParts gateway_{3, reactor_, hang_, directory_.path()};
};

TEST_F(PoolIsolation, AHangingPoolDelaysNoJobProbeOpeningTakeoverOrRecordOfAnother) {
  hang();
  gateway_.probe("healthy");
  ASSERT_EQ(gateway_.next("pool healthy"), "pool healthy ");
  gateway_.create("healthy");
  ASSERT_EQ(gateway_.next("job"), "job healthy ");
  gateway_.own("healthy", 1, 1);
  ASSERT_EQ(gateway_.next("volume " + uid_of(1)), "volume " + uid_of(1) + " SERVING 1 ");
  gateway_.commit(1);
  ASSERT_EQ(gateway_.next("committed"), "committed");
  // There and back again.
  other_.own("healthy", 1, 2);
  ASSERT_EQ(other_.next("volume " + uid_of(1)), "volume " + uid_of(1) + " SERVING 2 ");
  ASSERT_EQ(gateway_.next("volume " + uid_of(1) + " RELEASED"),
            "volume " + uid_of(1) + " RELEASED 1 ");
  gateway_.own("healthy", 1, 3);
  ASSERT_EQ(gateway_.next("volume " + uid_of(1)), "volume " + uid_of(1) + " SERVING 3 ");
  hang_.release();
}

// As after release_all() has timed out: the store still refers to the volume's storage, and with it
// to the pool's lock server.
TEST_F(PoolIsolation, ALockServerThatOutlivesTheVolumesAnswersThatNoLockIsHeld) {
  gateway_.create("healthy");
  EXPECT_EQ(gateway_.next("job"), "job healthy ");
  gateway_.own("healthy", 1, 1);
  EXPECT_EQ(gateway_.next("volume " + uid_of(1)), "volume " + uid_of(1) + " SERVING 1 ");
  const FileDescriptor records(
      ::open((directory_.path() + "/.sluice").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Holder holder;
  holder.socket = "gateway-3.sock";
  const auto ask = [&] { return ask_holder(records.get(), holder, uid_of(1), 0, 20 * kSecond); };
  EXPECT_EQ(ask().yield, Yield::kRefused);
  gateway_.destroy_volumes();
  EXPECT_EQ(ask().yield, Yield::kNotHeld);
}

}  // namespace
}  // namespace sluice::control
