#include "control/local/lock_handover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "control/local/file_storage.h"
#include "control/local/handover_socket.h"
#include "control/test_objects.h"

namespace sluice::control {
namespace {

class HandoverTest : public testing::Test {
 protected:
  std::shared_ptr<const PoolDirectory> pool(const std::string& incarnation, HolderAnswer answer) {
    auto opened = PoolDirectory::open(directory_.path(), incarnation,
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
  std::set<std::string> sockets() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/.sluice")) {
      if (entry.is_socket()) names.insert(entry.path().filename());
    }
    return names;
  }
  TestDirectory directory_;
  std::string asked_;
};

TEST_F(HandoverTest, TheHolderIsQueriedOverTheSocketNamedInItsRecord) {
  const auto holder = pool("a", {Yield::kRefused, 12});
  const auto other = pool("b", {});
  const HolderAnswer answer =
      ask_holder(other->records(), holder->self(), kVolumeUid, 11, 20 * kSecond);
  EXPECT_EQ(answer.yield, Yield::kRefused);
  EXPECT_EQ(answer.order, 12u);
  EXPECT_EQ(asked_, std::string(kVolumeUid) + " 11");
}

TEST_F(HandoverTest, AStaleSocketIsUnreachableAndIsRemovedByTheNextPool) {
  const auto first = pool("a", {});
  Holder gone;
  gone.socket = "gone.sock";
  ASSERT_TRUE(listen_by_name(first->records(), gone.socket)) << "and closed again";
  {
    const FileDescriptor killed_early = unix_socket();
    const sockaddr_un address = address_of(first->records(), "early.sock.new");
    ASSERT_EQ(
        ::bind(killed_early.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_EQ(ask_holder(first->records(), gone, kVolumeUid, 1, kSecond).yield, Yield::kUnreachable);
  EXPECT_EQ(sockets(), (std::set<std::string>{"a.sock", "early.sock.new", "gone.sock"}));
  const auto second = pool("b", {});
  EXPECT_EQ(sockets(), (std::set<std::string>{"a.sock", "b.sock"}));
}

TEST_F(HandoverTest, AServerStartsWhileOthersRemoveStaleSockets) {
  const Result<FileDescriptor> directory = open_directory(directory_.path());
  ASSERT_TRUE(directory) << directory.error();
  std::atomic<bool> ended = false;
  std::thread sweeper([&] {
    while (!ended) remove_stale_sockets(directory.value().get());
  });
  for (int i = 0; i < 2000; ++i) {
    const auto started = HandoverServer::start(directory.value().get(), "a.sock",
                                               [](auto&&...) { return HolderAnswer(); });
    EXPECT_TRUE(started) << i << ": " << started.error();
  }
  ended = true;
  sweeper.join();
}

// One that ends, or that hadn't the whole question in time, is no reason to kill at once.
TEST_F(HandoverTest, AHolderThatClosesWithoutAnswerIsUnreachableAndAHangingOneIsSilent) {
  const Result<FileDescriptor> directory = open_directory(directory_.path());
  ASSERT_TRUE(directory) << directory.error();
  Holder holder;
  holder.socket = "a.sock";
  const auto ask = [&](Nanos patience) {
    return ask_holder(directory.value().get(), holder, kVolumeUid, 1, patience).yield;
  };
  Result<FileDescriptor> socket = listen_by_name(directory.value().get(), holder.socket);
  ASSERT_TRUE(socket) << socket.error();
  EXPECT_EQ(ask(50 * kMillisecond), Yield::kSilent);
  // Discards the queued connection, which has no reader any more.
  ::close(::accept(socket.value().get(), nullptr, nullptr));

  std::thread closing([&] {
    const FileDescriptor unread(::accept(socket.value().get(), nullptr, nullptr));
    char byte = 0;
    EXPECT_EQ(::recv(unread.get(), &byte, 1, 0), 1);
  });
  EXPECT_EQ(ask(20 * kSecond), Yield::kUnreachable) << "closed with a part of it unread";
  closing.join();
  closing = std::thread([&] {
    const FileDescriptor read(::accept(socket.value().get(), nullptr, nullptr));
    char line[256];
    EXPECT_GT(::recv(read.get(), line, sizeof line, 0), 1);
  });
  EXPECT_EQ(ask(20 * kSecond), Yield::kUnreachable) << "closed, all read";
  closing.join();
  closing = std::thread([&] {
    pollfd asked{socket.value().get(), POLLIN, 0};
    EXPECT_EQ(::poll(&asked, 1, -1), 1);
    socket = FileDescriptor();
  });
  EXPECT_EQ(ask(20 * kSecond), Yield::kUnreachable) << "ended before it took the connection";
  closing.join();
}

// As where an administrator edits the devices of a pool whose volumes are served.
TEST_F(HandoverTest, AServerThatEndsLeavesTheSocketToALaterServerOfTheSameName) {
  auto former = pool("a", {Yield::kRefused, 12});
  auto later = pool("a", {Yield::kRefused, 12});
  const Holder holder = later->self();
  const auto other = pool("b", {});
  former.reset();
  const HolderAnswer answer = ask_holder(other->records(), holder, kVolumeUid, 11, 20 * kSecond);
  EXPECT_EQ(answer.yield, Yield::kRefused);
  EXPECT_EQ(answer.order, 12u);
  later.reset();
  EXPECT_EQ(sockets(), std::set<std::string>{"b.sock"});
}

// As where that pool is then taken away, and the volume is still being released.
TEST_F(HandoverTest, AFormerPoolStillAnswersAfterALaterPoolOfItsDirectoryEnded) {
  auto former = pool("a", {Yield::kRefused, 12});
  auto later = pool("a", {Yield::kRefused, 12});
  const auto other = pool("b", {});
  later.reset();
  EXPECT_EQ(ask_holder(other->records(), former->self(), kVolumeUid, 11, 20 * kSecond).yield,
            Yield::kRefused);
  former.reset();
  EXPECT_EQ(sockets(), std::set<std::string>{"b.sock"});
}

TEST_F(HandoverTest, ARemovedSocketIsRecreatedWhenThePoolIsOpenedAgain) {
  auto former = pool("a", {Yield::kRefused, 12});
  ASSERT_TRUE(std::filesystem::remove(directory_.path() + "/.sluice/a.sock"));
  const auto later = pool("a", {Yield::kRefused, 12});
  former.reset();
  EXPECT_EQ(ask_holder(later->records(), later->self(), kVolumeUid, 11, 20 * kSecond).yield,
            Yield::kRefused);
}

TEST_F(HandoverTest, EachRequestIsAnsweredWhileALaterServerReplacesTheSocket) {
  const Result<FileDescriptor> directory = open_directory(directory_.path());
  ASSERT_TRUE(directory) << directory.error();
  std::vector<std::shared_ptr<HandoverServer>> servers;
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

TEST_F(HandoverTest, ASecondOpenFileDescriptionFindsTheLockHeld) {
  make_disk();
  const auto here = pool("a", {});
  const auto storage = std::make_shared<FileStorage>(here, kVolumeUid, "disk");
  VolumeStorage::Opened first = storage->open(volume());
  ASSERT_NE(first.backend, nullptr) << first.problem;
  VolumeStorage::Opened second = storage->open(volume());
  EXPECT_EQ(second.backend, nullptr);
  EXPECT_TRUE(second.held) << second.problem;
  first.backend.reset();
  EXPECT_NE(storage->open(volume()).backend, nullptr);
}

TEST_F(HandoverTest, LocationsThatAreNoFilesOfThePoolAreRefused) {
  make_disk();
  const auto here = pool("a", {});
  ASSERT_EQ(::symlink("disk", (directory_.path() + "/link").c_str()), 0);
  for (const char* location : {"link", "../disk", "nothing", "."}) {
    const VolumeStorage::Opened opened = FileStorage(here, kVolumeUid, location).open(volume());
    EXPECT_EQ(opened.backend, nullptr) << location;
    EXPECT_FALSE(opened.held) << location;
    EXPECT_FALSE(opened.problem.empty()) << location;
  }
}

// A process that holds the lock, is recorded, and answers no request.
TEST_F(HandoverTest, OnlyTheRecordedHolderProcessIsKilledAndItsLockIsThenFree) {
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
  const auto storage = std::make_shared<FileStorage>(here, kVolumeUid, "disk");
  EXPECT_TRUE(storage->open(volume()).held);
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
  EXPECT_TRUE(storage->open(volume()).held);
  const Result<void> killed = kill_holder(holder, here->self());
  EXPECT_TRUE(killed) << killed.error();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_NE(storage->open(volume()).backend, nullptr);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace sluice::control
