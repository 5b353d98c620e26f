// Conversations, kept in this browser alone.

const KEY = "chaski.conversations";

export class Conversations {
  constructor(storage = localStorage) {
    this.storage = storage;
    try {
      this.all = JSON.parse(storage.getItem(KEY)) ?? [];
    } catch {
      this.all = [];
    }
    if (this.all.length === 0) this.add();
    this.current = this.all[0];
  }

  add() {
    this.current = { id: crypto.randomUUID(), messages: [] };
    this.all.unshift(this.current);
    this.save();
  }

  choose(id) {
    this.current = this.all.find((c) => c.id === id) ?? this.current;
  }

  remove(id) {
    this.all = this.all.filter((c) => c.id !== id);
    if (this.all.length === 0) this.add();
    if (this.current.id === id) this.current = this.all[0];
    this.save();
  }

  title(conversation) {
    return conversation.messages.find((m) => m.role === "user")?.content.slice(0, 60) ?? "(empty)";
  }

  save() {
    this.storage.setItem(KEY, JSON.stringify(this.all));
  }
}
