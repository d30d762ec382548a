/* Stands in for Pyxis: a SPANK plugin that takes the options of srun which we write for Pyxis, with a folder as the image.
 *
 * cc -shared -fPIC -o spank_container.so spank_container.c; one line of plugstack.conf: required /path/spank_container.so
 * A task gets its own mount namespace and the image under a layer that goes with it; then its root is changed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

SPANK_PLUGIN(container, 1)

#define BASE "/mnt"
#define ROOT BASE "/root"

enum { IMAGE, MOUNTS, WORKDIR, IGNORED };
static char *given[IGNORED];

static int take(int which, const char *text, int remote) {
  (void)remote;
  if (which < IGNORED)
    given[which] = strdup(text);
  return 0;
}

/* What is ignored says how an image's own settings count; a folder has none. */
struct spank_option spank_options[] = {
  {"container-image", "FOLDER", "the root file system of the tasks", 1, IMAGE, take},
  {"container-mounts", "FROM:TO[:FLAGS][,...]", "what of the node is seen inside", 1, MOUNTS, take},
  {"container-workdir", "FOLDER", "where the tasks start", 1, WORKDIR, take},
  {"container-env", "NAME[,...]", "variables that are not the image's", 1, IGNORED, take},
  {"container-writable", NULL, "let the tasks write", 0, IGNORED, take},
  {"no-container-mount-home", NULL, "leave the home outside", 0, IGNORED, take},
  {"no-container-remap-root", NULL, "stay the user", 0, IGNORED, take},
  {"no-container-entrypoint", NULL, "start the command itself", 0, IGNORED, take},
  SPANK_OPTIONS_TABLE_END,
};

static int failed(const char *what) {
  slurm_error("container: %s: %m", what);
  return -1;
}

/* Makes a folder or an empty file, and the folders above it. */
static int make(char *path, int is_folder) {
  for (char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
    *end = 0;
    int bad = mkdir(path, 0755) && errno != EEXIST;
    *end = '/';
    if (bad)
      return -1;
  }
  if (is_folder)
    return mkdir(path, 0755) && errno != EEXIST ? -1 : 0;
  int file = open(path, O_CREAT | O_WRONLY, 0644);
  return file < 0 ? -1 : close(file);
}

static int show(const char *from, const char *to, int read_only) {
  struct stat found;
  char place[PATH_MAX];
  snprintf(place, sizeof place, ROOT "%s", to);
  if (stat(from, &found) || make(place, S_ISDIR(found.st_mode)))
    return failed(from);
  if (mount(from, place, NULL, MS_BIND | MS_REC, NULL))
    return failed(to);
  return read_only && mount(NULL, place, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) ? failed(to) : 0;
}

static int layer(void) {
  char options[PATH_MAX + 100];
  snprintf(options, sizeof options, "lowerdir=%s,upperdir=" BASE "/upper,workdir=" BASE "/work", given[IMAGE]);
  if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
    return failed("a mount namespace");
  if (mount("container", BASE, "tmpfs", 0, "mode=755"))
    return failed(BASE);
  if (mkdir(BASE "/upper", 0755) || mkdir(BASE "/work", 0755) || mkdir(ROOT, 0755))
    return failed(BASE);
  return mount("container", ROOT, "overlay", 0, options) ? failed(given[IMAGE]) : 0;
}

static int show_wanted(void) {
  for (char *one = given[MOUNTS] ? strtok(given[MOUNTS], ",") : NULL; one; one = strtok(NULL, ",")) {
    char *to = strchr(one, ':');
    if (to)
      *to++ = 0;
    char *flags = to ? strchr(to, ':') : NULL;
    if (flags)
      *flags++ = 0;
    if (show(one, to ? to : one, flags && !strcmp(flags, "ro")))
      return -1;
  }
  return 0;
}

int slurm_spank_task_init_privileged(spank_t spank, int count, char **words) {
  static const char *always[] = {"/proc", "/sys", "/dev", "/tmp", "/etc/hosts", "/etc/passwd", "/etc/group", NULL};
  (void)count, (void)words;
  if (!spank_remote(spank) || !given[IMAGE])
    return 0;
  if (layer())
    return -1;
  for (const char **path = always; *path; path++)
    if (show(*path, *path, 0))
      return -1;
  if (show_wanted())
    return -1;
  return chroot(ROOT) || chdir("/") ? failed(ROOT) : 0;
}

/* Only here does the task's own folder count: Slurm has gone to the step's before. */
int slurm_spank_task_init(spank_t spank, int count, char **words) {
  (void)count, (void)words;
  if (!spank_remote(spank) || !given[IMAGE] || !given[WORKDIR])
    return 0;
  return chdir(given[WORKDIR]) ? failed(given[WORKDIR]) : 0;
}
