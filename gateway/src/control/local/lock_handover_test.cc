#include "control/local/lock_handover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

#include "control/local/local_pool.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

class HandoverTest : public testing::Test {
 protected:
  std::shared_ptr<LocalPool> pool(const std::string& incarnation, HolderAnswer answer) {
    auto opened = LocalPool::open(directory_.path(), incarnation,
                                  [this, answer](const std::string& volume, uint64_t order) {
                                    asked_ = volume + ' ' + std::to_string(order);
                                    return answer;
                                  });
    EXPECT_TRUE(opened) << opened.error();
    return opened.value();
  }
  wire::DesiredVolume volume() const {
    wire::DesiredVolume volume;
    volume.set_uid(kVolumeUid);
    volume.set_location("disk");
    volume.set_size_bytes(1 << 20);
    volume.set_block_size(512);
    return volume;
  }
  void make_disk() {
    const int fd = ::open((directory_.path() + "/disk").c_str(), O_CREAT | O_RDWR, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::ftruncate(fd, 1 << 20), 0);
    ::close(fd);
  }
  TestDirectory directory_;
  std::string asked_;
};

TEST_F(HandoverTest, TheHolderIsAskedOverTheSocketThatItsRecordNames) {
  const auto holder = pool("a", {Yield::kRefused, 12});
  const auto other = pool("b", {});
  const HolderAnswer answer =
      ask_holder(other->records(), holder->self(), kVolumeUid, 11, 20 * kSecond);
  EXPECT_EQ(answer.yield, Yield::kRefused);
  EXPECT_EQ(answer.order, 12u);
  EXPECT_EQ(asked_, std::string(kVolumeUid) + " 11");
}

TEST_F(HandoverTest, ASocketWithoutAProcessIsUnreachableAndIsSweptAway) {
  Holder gone;
  gone.socket = "gone.sock";
  const auto here = pool("b", {});
  EXPECT_EQ(ask_holder(here->records(), gone, kVolumeUid, 1, kSecond).yield, Yield::kUnreachable);
}

// As where an administrator edits the devices of a pool whose volumes are served.
TEST_F(HandoverTest, AServerThatEndsLeavesTheSocketToALaterOneOfItsName) {
  auto former = pool("a", {Yield::kNotHeld, 0});
  auto later = pool("a", {Yield::kRefused, 12});
  const Holder holder = later->self();
  const auto other = pool("b", {});
  former.reset();
  const HolderAnswer answer = ask_holder(other->records(), holder, kVolumeUid, 11, 20 * kSecond);
  EXPECT_EQ(answer.yield, Yield::kRefused);
  EXPECT_EQ(answer.order, 12u);
  later.reset();
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/.sluice/a.sock"));
}

TEST_F(HandoverTest, WhileALaterServerTakesANameSomeoneAnswersByIt) {
  const Result<FileDescriptor> directory = open_directory(directory_.path());
  ASSERT_TRUE(directory) << directory.error();
  std::vector<std::unique_ptr<HandoverServer>> servers;
  const auto start_one = [&] {
    auto started = HandoverServer::start(directory.value().get(), "a.sock",
                                         [](auto&&...) { return HolderAnswer{Yield::kYielding}; });
    ASSERT_TRUE(started) << started.error();
    servers.push_back(std::move(started).value());
  };
  start_one();
  Holder holder;
  holder.socket = "a.sock";
  std::atomic<bool> ended = false;
  std::thread peer([&] {
    while (!ended) {
      EXPECT_EQ(ask_holder(directory.value().get(), holder, kVolumeUid, 1, 20 * kSecond).yield,
                Yield::kYielding);
    }
  });
  for (int i = 0; i < 100; ++i) start_one();
  ended = true;
  peer.join();
}

TEST_F(HandoverTest, OneDescriptionHasTheLockAndASecondFindsItHeld) {
  make_disk();
  const auto here = pool("a", {});
  const auto place = here->place(kVolumeUid, "disk");
  Place::Opened first = place->open(volume());
  ASSERT_NE(first.backend, nullptr) << first.problem;
  Place::Opened second = place->open(volume());
  EXPECT_EQ(second.backend, nullptr);
  EXPECT_TRUE(second.held) << second.problem;
  first.backend.reset();
  EXPECT_NE(place->open(volume()).backend, nullptr);
}

TEST_F(HandoverTest, LocationsStayBelowThePool) {
  make_disk();
  const auto here = pool("a", {});
  ASSERT_EQ(::symlink("disk", (directory_.path() + "/link").c_str()), 0);
  for (const char* location : {"link", "../disk", "nothing", "."}) {
    const Place::Opened opened = here->place(kVolumeUid, location)->open(volume());
    EXPECT_EQ(opened.backend, nullptr) << location;
    EXPECT_FALSE(opened.held) << location;
    EXPECT_FALSE(opened.problem.empty()) << location;
  }
}

// A process that holds the lock, has recorded itself, and answers nobody.
TEST_F(HandoverTest, ASilentHolderIsKilledAndItsLockIsFreeWhenItIsGone) {
  make_disk();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int fd = ::open((directory_.path() + "/disk").c_str(), O_RDWR);
    const bool locked = ::flock(fd, LOCK_EX) == 0;
    const Holder me = this_process("child", "child.sock");
    const bool told = ::write(ready[1], &me.start_time, sizeof me.start_time) > 0;
    if (locked && told) ::pause();
    ::_exit(1);
  }
  Holder holder = this_process("child", "child.sock");
  holder.pid = child;
  ASSERT_EQ(::read(ready[0], &holder.start_time, sizeof holder.start_time),
            static_cast<ssize_t>(sizeof holder.start_time));
  const auto here = pool("a", {});
  const auto place = here->place(kVolumeUid, "disk");
  EXPECT_TRUE(place->open(volume()).held);
  Holder another = holder;
  ++another.start_time;
  EXPECT_FALSE(kill_holder(another, here->self())) << "a reused pid";
  another = holder;
  ++another.pid_namespace;
  EXPECT_FALSE(kill_holder(another, here->self())) << "a pid of another namespace";
  another = holder;
  another.boot_id = "another";
  EXPECT_FALSE(kill_holder(another, here->self())) << "before the last boot";
  EXPECT_FALSE(kill_holder(here->self(), here->self())) << "this process itself";
  EXPECT_TRUE(place->open(volume()).held);
  const Result<void> killed = kill_holder(holder, here->self());
  EXPECT_TRUE(killed) << killed.error();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_NE(place->open(volume()).backend, nullptr);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace sluice::control
