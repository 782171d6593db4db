#include "check/tiles.h"
void tiles_padding(Tiles *tiles) { (void)tiles; }
